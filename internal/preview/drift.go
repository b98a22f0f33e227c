package preview

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rutterhq/rutter"
)

// Drift is an object that is not on its cluster as the base declares it.
type Drift struct {
	Application string `json:"application"`
	Cluster     string `json:"cluster"`
	Group       string `json:"group,omitempty"`
	Kind        string `json:"kind"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name"`
	// Reason is why it differs: missing, not declared, differs.
	Reason string `json:"reason"`
	// Healed says that the Application heals itself, so that this is undone.
	Healed bool         `json:"healed,omitempty"`
	Fields []DriftField `json:"fields,omitempty"`
}

// DriftField is a field that differs. Values are JSON; empty means absent; those
// of Secrets are hidden.
type DriftField struct {
	Path     string `json:"path"`
	Declared string `json:"declared,omitempty"`
	Live     string `json:"live,omitempty"`
	// Manager is the field manager that wrote the live value, when known.
	Manager string `json:"manager,omitempty"`
	// Touched says that the plan changes this field too.
	Touched bool `json:"touched,omitempty"`
}

// DriftOf are the objects of a report that are not as they are declared.
func DriftOf(application, cluster string, heals bool, report rutter.Report) []Drift {
	var out []Drift
	for _, r := range report.Resources {
		if r.State != rutter.OutOfSync {
			continue
		}
		d := Drift{Application: application, Cluster: cluster, Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, Reason: r.Reason, Healed: heals}
		for _, f := range r.Diffs {
			d.Fields = append(d.Fields, DriftField{Path: f.Path, Declared: f.Desired, Live: f.Live, Manager: f.Manager})
		}
		out = append(out, d)
	}
	return out
}

// AddDrift puts what is drifted now into a plan, in order, and marks the fields
// that the plan changes as well. It is not a part of the digest: it is not what
// the change does.
func (p *Plan) AddDrift(drift []Drift) {
	type place struct {
		cluster string
		ref     rutter.Ref
		path    string
	}
	touched := map[place]bool{}
	for _, o := range p.Objects {
		for _, f := range o.Fields {
			touched[place{o.Cluster, o.Ref(), f.Path}] = true
		}
	}
	for i := range drift {
		d := &drift[i]
		for j := range d.Fields {
			d.Fields[j].Touched = touched[place{d.Cluster, d.ref(), d.Fields[j].Path}]
		}
	}
	slices.SortFunc(drift, func(a, b Drift) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Application, b.Application), a.ref().Compare(b.ref()))
	})
	p.Drift = drift
	p.Summary.Drift = len(drift)
}

func (d Drift) ref() rutter.Ref {
	return rutter.Ref{Group: d.Group, Kind: d.Kind, Namespace: d.Namespace, Name: d.Name}
}

// sentence says what is drifted, in a line.
func (d Drift) sentence() string {
	return fmt.Sprintf("%s on %s (application %s): %s", shortRef(d.ref()), d.Cluster, d.Application, d.words())
}

func (d Drift) words() string {
	words := d.Reason
	switch {
	case d.Healed:
		words += "; self-heal puts it back"
	default:
		words += "; it stays until somebody syncs"
	}
	return words
}

// words are a field of it in a line.
func (f DriftField) words() string {
	return fmt.Sprintf("declared %s, live %s", cmp.Or(f.Declared, "nothing"), cmp.Or(f.Live, "nothing")) + f.note()
}

// note is who wrote the live value, and whether the plan changes it too.
func (f DriftField) note() string {
	text := ""
	if f.Manager != "" {
		text += ", written by " + f.Manager
	}
	if f.Touched {
		text += " (this change touches it too)"
	}
	return text
}

func shortRef(r rutter.Ref) string {
	kind := r.Kind
	if r.Group != "" {
		kind += "." + r.Group
	}
	if r.Namespace != "" {
		return kind + " " + r.Namespace + "/" + r.Name
	}
	return kind + " " + r.Name
}
