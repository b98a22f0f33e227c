package explain

import (
	"fmt"
	"strings"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/fieldpath"
)

// The names of the causes.
const (
	ByHand      = "edited by hand"
	Scaler      = "scaler"
	OtherTool   = "another GitOps tool"
	Controller  = "controller or webhook"
	Unowned     = "default or webhook"
	OtherWriter = "another writer"
	NotSynced   = "not synced yet"
	Absent      = "missing"
	Extra       = "not declared"
	Immutable   = "immutable field"
	Refused     = "refused by the server"
	MissingKind = "missing kind"
	TaintedKind = "kind cannot be watched"
	OtherApp    = "another application"
	NotCompared = "not compared"
)

// Cause is why something is as it is, and what to do about it.
type Cause struct {
	// Name is one of the constants of this package.
	Name string `json:"name"`
	// Words say it in a sentence, with what is known of who and when.
	Words string `json:"words"`
	// Remedy is what to do: a command, a change in Git, or the YAML of a rule.
	Remedy string `json:"remedy"`
}

// Facts are what is known of an object that differs.
type Facts struct {
	// Application is the name that commands know it by.
	Application string
	// SelfHeal says that the Application puts drift back by itself.
	SelfHeal bool
	Resource rutter.ResourceReport
	// Writers are the live object's managers; empty when it was not read.
	Writers []Writer
}

// Classify says which of the known causes a field that differs has.
func Classify(diff rutter.FieldDiff, f Facts) Cause {
	path, _ := fieldpath.Parse(diff.Path)
	w := writerOf(f.Writers, diff.Manager, path)
	when := written(w)
	switch kind := kindOf(diff.Manager, w, diff.Path); kind {
	case NotSynced:
		return Cause{kind, "the live value is what the last sync sent" + when + "; Git declares another by now", f.sync()}
	case ByHand:
		return Cause{kind, "somebody edited it by hand with " + diff.Manager + when, f.byHand()}
	case Scaler:
		return Cause{kind, scalerName(diff.Manager) + " scales it" + when,
			"Leave replicas to the scaler: remove the field" + f.at() + ", or ignore it:\n" + f.rule(diff)}
	case OtherTool:
		return Cause{kind, "the tool " + diff.Manager + " applies the object too, and wrote this" + when,
			"Let one tool have the object: take it out of what " + diff.Manager + " applies, or out of Git" + f.at() + ". Until then both write it in turn."}
	case Controller:
		return Cause{kind, "the controller " + diff.Manager + " wrote it" + when,
			"If that is its business, remove the field" + f.at() + " or ignore it:\n" + f.rule(diff)}
	case Unowned:
		return Cause{kind, "no manager is recorded for the live value: the server's default, an admission webhook, or a field that is not there",
			"Sync it: " + f.syncCommand() + ". If it comes back, a webhook or a default changes it: declare that value" + f.at() + ", or ignore it:\n" + f.rule(diff)}
	default:
		return Cause{kind, diff.Manager + " wrote it" + when,
			"If " + diff.Manager + " is to have the field, ignore it:\n" + f.rule(diff) + "Otherwise put it back: " + f.syncCommand() + "."}
	}
}

// kindOf tells a manager's kind by its name, and by how it wrote.
func kindOf(manager string, w *Writer, path string) string {
	lower := strings.ToLower(manager)
	replicas := strings.HasSuffix(path, ".replicas")
	switch {
	case manager == "":
		return Unowned
	case manager == rutter.FieldManager:
		return NotSynced
	case strings.HasPrefix(lower, "kubectl"):
		return ByHand
	case replicas && (strings.Contains(lower, "autoscaler") || strings.HasPrefix(lower, "keda")):
		return Scaler
	case replicas && w != nil && w.Subresource == "scale":
		return Scaler
	}
	switch lower {
	case "k9s", "lens", "node-fetch", "mozilla", "dashboard", "headlamp": // what people click in
		return ByHand
	case "argocd-controller", "argocd-application-controller", "argocd-server", "kustomize-controller", "helm-controller", "flux", "helm",
		"terraform", "pulumi-kubernetes":
		return OtherTool
	case "kube-controller-manager", "kube-scheduler", "kube-apiserver", "kubelet", "istiod", "pilot-discovery":
		return Controller
	}
	for _, mark := range []string{"controller", "operator", "webhook", "injector", "autoscaler", "keda"} {
		if strings.Contains(lower, mark) {
			return Controller
		}
	}
	return OtherWriter
}

func scalerName(manager string) string {
	if manager == "kube-controller-manager" {
		return "a HorizontalPodAutoscaler (" + manager + ")"
	}
	return manager
}

func written(w *Writer) string {
	if at := stamp(w); at != "" {
		return " at " + at
	}
	return ""
}

// stamp is when an entry was last written; empty when that is not known.
func stamp(w *Writer) string {
	if w == nil || w.At.IsZero() {
		return ""
	}
	return w.At.UTC().Format(time.RFC3339)
}

// at is where the object is written in Git, as a part of a sentence.
func (f Facts) at() string {
	if p := place(f.Resource.Origin); p != "" {
		return " in " + p
	}
	return ""
}

func place(o rutter.Origin) string {
	if o.File == "" || o.Line == 0 {
		return o.File
	}
	return fmt.Sprintf("%s:%d", o.File, o.Line)
}

func (f Facts) syncCommand() string { return "rutter app sync " + f.Application }

func (f Facts) sync() string {
	return "Sync it: " + f.syncCommand()
}

func (f Facts) byHand() string {
	back := "If not, put it back: " + f.syncCommand() + ", or let the Application do it: spec.syncPolicy.automated.selfHeal: true."
	if f.SelfHeal {
		back = "If not, do nothing: the Application heals itself."
	}
	return "If the edit is wanted, write it in Git" + f.at() + ". " + back
}

// rule is the narrowest rule that ignores a field of this object.
func (f Facts) rule(diff rutter.FieldDiff) string {
	rule, ok := fieldpath.Rule(f.Resource.Ref, diff.Path)
	if !ok {
		rule.Managers = []string{diff.Manager}
	}
	return fieldpath.Text(rule)
}
