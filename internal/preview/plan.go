package preview

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
)

// Schema names the form of a plan as JSON; docs/plan.schema.json describes it.
const Schema = "rutter.dev/plan/v1"

// Verb is what becomes of something.
type Verb string

// The verbs, worst first: the order in which changes are shown.
const (
	// Delete removes it.
	Delete Verb = "delete"
	// Leave is for what is no longer declared and stays.
	Leave Verb = "leave"
	// Move is another name, set or owner for what stays as it is otherwise.
	Move Verb = "move"
	// Change writes other content.
	Change Verb = "change"
	// Add makes it.
	Add Verb = "add"
)

// Plan is what would happen to the fleet.
type Plan struct { //nolint:recvcheck // it is built by pointer and read by value
	Schema string   `json:"schema"`
	Base   Revision `json:"base"`
	Head   Revision `json:"head"`
	// Digest names this plan and no other.
	Digest  string  `json:"digest"`
	Summary Summary `json:"summary"`

	Risks    []Risk    `json:"risks"`
	Held     []Held    `json:"held"`
	Refused  []Refusal `json:"refused"`
	Problems []Problem `json:"problems"`
	// Projects change what is allowed; what that refuses is in Refused.
	Projects     []ProjectChange `json:"projects"`
	Sets         []SetChange     `json:"sets"`
	Applications []UnitChange    `json:"applications"`
	Objects      []ObjectChange  `json:"objects"`
	// Groups fold equal changes of Applications and of objects.
	Groups []Group `json:"groups"`
	// Drift is what is not as the base declares it, on the clusters now; it is
	// looked for only with a control plane.
	Drift []Drift `json:"drift,omitempty"`
	// Notes are what this preview could not take into account.
	Notes []string `json:"notes"`
}

// Revision is one side as it was named and as it was found.
type Revision struct {
	Name   string `json:"name"`
	Commit string `json:"commit"`
}

// Counts counts by verb.
type Counts struct { //nolint:recvcheck // likewise
	Delete int `json:"delete"`
	Leave  int `json:"leave"`
	Move   int `json:"move"`
	Change int `json:"change"`
	Add    int `json:"add"`
}

func (c *Counts) count(v Verb) {
	switch v {
	case Delete:
		c.Delete++
	case Leave:
		c.Leave++
	case Move:
		c.Move++
	case Change:
		c.Change++
	case Add:
		c.Add++
	}
}

func (c Counts) total() int { return c.Delete + c.Leave + c.Move + c.Change + c.Add }

// Summary is the plan in numbers.
type Summary struct {
	Projects     Counts `json:"projects"`
	Sets         Counts `json:"sets"`
	Applications Counts `json:"applications"`
	Objects      Counts `json:"objects"`
	// Clusters are those on which an object changes.
	Clusters int `json:"clusters"`
	// Total are the Applications of the head.
	Total int `json:"total"`
	Risks int `json:"risks"`
	Held  int `json:"held"`
	// Refused are the refusals that the change brings.
	Refused int `json:"refused"`
	// Errors are the problems that the change brings.
	Errors int `json:"errors"`
	// Drift counts the objects that are not as the base declares them.
	Drift int `json:"drift,omitempty"`
}

// ProjectChange is what becomes of a project.
type ProjectChange struct {
	Verb   Verb    `json:"change"`
	Name   string  `json:"name"`
	File   string  `json:"file,omitempty"`
	Fields []Field `json:"fields,omitempty"`

	declared string // what the digest is made of
}

// SetChange is what becomes of a set.
type SetChange struct {
	Verb   Verb    `json:"change"`
	Name   string  `json:"name"`
	File   string  `json:"file,omitempty"`
	Before int     `json:"before"`
	After  int     `json:"after"`
	Fields []Field `json:"fields,omitempty"`

	declared string // what the digest is made of
}

// UnitChange is what becomes of an Application.
type UnitChange struct {
	Verb Verb   `json:"change"`
	Name string `json:"name"`
	// From is the name before a move; FromSet the set.
	From    string `json:"from,omitempty"`
	Set     string `json:"set,omitempty"`
	FromSet string `json:"fromSet,omitempty"`
	Parent  string `json:"parent,omitempty"`
	File    string `json:"file,omitempty"`
	Cluster string `json:"cluster"`
	// Reason says why, where that is not plain.
	Reason string `json:"reason,omitempty"`
	// Manual says that its objects change only when somebody syncs it.
	Manual bool    `json:"manual,omitempty"`
	Fields []Field `json:"fields,omitempty"`
	// Objects counts what becomes of its objects.
	Objects Counts `json:"objects"`

	declared string // what the digest is made of
}

// ObjectChange is what becomes of one object on one cluster.
type ObjectChange struct {
	Verb      Verb   `json:"change"`
	Cluster   string `json:"cluster"`
	Group     string `json:"group,omitempty"`
	Version   string `json:"version"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Application declares it, or did.
	Application string `json:"application"`
	// From is the Application that hands it over.
	From   string  `json:"from,omitempty"`
	File   string  `json:"file,omitempty"`
	Line   int     `json:"line,omitempty"`
	Hook   bool    `json:"hook,omitempty"`
	Reason string  `json:"reason,omitempty"`
	Fields []Field `json:"fields,omitempty"`

	// Before and After are the whole objects as they are sent, for who checks the
	// plan; they are never printed.
	Before *unstructured.Unstructured `json:"-"`
	After  *unstructured.Unstructured `json:"-"`

	before, after string // what the digest is made of
	namespaceOf   string // the unit's namespace
}

// Ref is the identity of the object.
func (c ObjectChange) Ref() rutter.Ref {
	return rutter.Ref{Group: c.Group, Kind: c.Kind, Namespace: c.Namespace, Name: c.Name}
}

// Field is one field that differs. Values are JSON; empty means absent. Those of
// Secrets are hidden: equal runs of + stand for equal values.
type Field struct {
	Path string `json:"path"`
	Old  string `json:"old,omitempty"`
	New  string `json:"new,omitempty"`
}

// Risk is something in the plan to look at before it is merged.
type Risk struct {
	// Rule names the kind of risk, such as delete-namespace.
	Rule    string `json:"rule"`
	Message string `json:"message"`
	Cluster string `json:"cluster,omitempty"`
	Object  string `json:"object,omitempty"`
	// Application is whose it is.
	Application string `json:"application"`
}

// Held is what the deletion budget does not let through.
type Held struct {
	Set string `json:"set"`
	// Applications are those whose removal waits.
	Applications []string `json:"applications"`
	Reason       string   `json:"reason"`
	// Namespace and Digest are of the set on the control plane and of the removals,
	// as the controller will name them; empty where no control plane was asked.
	Namespace string `json:"namespace,omitempty"`
	Digest    string `json:"digest,omitempty"`
	// ObjectsStay says that the set preserves the objects of what it removes, and
	// Risks are of those that would go otherwise, once that is approved.
	ObjectsStay bool   `json:"objectsStay,omitempty"`
	Risks       []Risk `json:"risks,omitempty"`
}

// Refusal is what the rules of a project forbid.
type Refusal struct {
	Application string `json:"application"`
	Object      string `json:"object,omitempty"`
	Cluster     string `json:"cluster,omitempty"`
	Reason      string `json:"reason"`
	// Known says that it is as before: the change does not bring it.
	Known bool `json:"known,omitempty"`
}

// Problem is what could not be looked at.
type Problem struct {
	// Where is the Application, set or file.
	Where   string `json:"where"`
	Message string `json:"message"`
	// Known says that it is as before: the change does not bring it.
	Known bool `json:"known,omitempty"`
}

// Group is a change that several have in common.
type Group struct {
	Verb Verb `json:"change"`
	// Of is the kind: Application, or that of objects with its group.
	Of string `json:"of"`
	// Fields are the common changes; what is each one's own in them stands as
	// <application>, <name>, <namespace>.
	Fields       []Field  `json:"fields,omitempty"`
	Reason       string   `json:"reason,omitempty"`
	Count        int      `json:"count"`
	Applications []string `json:"applications"`
	Clusters     []string `json:"clusters"`
	// Names are the members', at most some of them when they are many.
	Names []string `json:"names"`
}

// ofUnits is the kind of groups of Applications.
const ofUnits = "Application"

// Empty reports whether nothing would happen.
func (p Plan) Empty() bool {
	return len(p.Projects) == 0 && len(p.Sets) == 0 && len(p.Applications) == 0 && len(p.Objects) == 0
}

// Blocked reports whether something would be held back or refused.
func (p Plan) Blocked() bool { return len(p.Held) > 0 || p.Summary.Refused > 0 }
