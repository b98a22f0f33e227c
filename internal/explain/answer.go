package explain

import (
	"slices"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/fieldpath"
)

// mostObjects bounds what is explained of one Application; the rest is counted.
const mostObjects = 100

// Answer is what rutter explain says of an Application.
type Answer struct {
	Application string           `json:"application"`
	Cluster     string           `json:"cluster"`
	Revisions   []string         `json:"revisions,omitempty"`
	Sync        rutter.SyncState `json:"sync"`
	Health      rutter.Health    `json:"health"`
	Differences []Difference     `json:"differences"`
	// More counts the objects that differ and are not in Differences.
	More int `json:"more,omitempty"`
	// NotSyncing is why what differs is not put right by itself.
	NotSyncing []Cause `json:"notSyncing"`
	// NotHealthy are the objects that are not healthy, the worst first.
	NotHealthy []Ailment `json:"notHealthy"`
}

// Difference is an object that is not as Git declares it.
type Difference struct {
	Group     string           `json:"group,omitempty"`
	Kind      string           `json:"kind"`
	Namespace string           `json:"namespace,omitempty"`
	Name      string           `json:"name"`
	State     rutter.SyncState `json:"state"`
	// Since is when it was first seen so; RFC 3339, empty when not known.
	Since string `json:"since,omitempty"`
	// File and Line are where Git declares the object.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	// Cause is of the object as a whole; nil where Fields say it.
	Cause  *Cause  `json:"cause,omitempty"`
	Fields []Field `json:"fields,omitempty"`
}

// Field is a field that differs; values of Secrets are hidden.
type Field struct {
	rutter.FieldDiff

	// WrittenAt is when its manager last wrote; RFC 3339, empty when not known.
	WrittenAt string `json:"writtenAt,omitempty"`
	// Since is when it was first seen to differ; RFC 3339, empty when not known.
	Since string `json:"since,omitempty"`
	// Returned is how often it came back after it was put back.
	Returned int `json:"returned,omitempty"`
	// ContestedUntil is set while it is not put back, as somebody writes it again
	// each time; RFC 3339.
	ContestedUntil string `json:"contestedUntil,omitempty"`
	Cause          Cause  `json:"cause"`
}

// Situation is what is known of an Application, from whom it was read.
type Situation struct {
	// Application is the name that commands know it by.
	Application string
	Cluster     string
	Report      rutter.Report
	// Policy is the Application's own, with its automation.
	Policy rutter.SyncPolicy
	// Hold says who holds it and until when; empty when nobody does.
	Hold string
	// Away is why the cluster does not answer; empty when it does.
	Away string
	// Set is the ApplicationSet that generates it, and SetHeld what it holds back.
	Set, SetHeld string
	// Conditions are those that the controller has written.
	Conditions []rutter.Condition
	// Operation is the last sync as the controller has written it.
	Operation *rutter.OperationReport
	// Writers are the managers of the live objects that were read.
	Writers map[rutter.Ref][]Writer
	// Causes are what was found below an unhealthy object, such as a pod's message.
	Causes map[rutter.Ref][]string
}

// Explain answers for an Application.
func Explain(s Situation) Answer {
	a := Answer{Application: s.Application, Cluster: s.Cluster, Revisions: s.Report.Revisions, Sync: s.Report.Sync, Health: s.Report.Health,
		Differences: []Difference{}, NotSyncing: notSyncing(s), NotHealthy: notHealthy(s)}
	for _, r := range Differing(s.Report) {
		if len(a.Differences) == mostObjects {
			a.More++
			continue
		}
		a.Differences = append(a.Differences, differenceOf(s, r))
	}
	return a
}

// Differing are the objects of a report that are not Synced, in its order.
func Differing(report rutter.Report) []rutter.ResourceReport {
	return slices.DeleteFunc(slices.Clone(report.Resources), func(r rutter.ResourceReport) bool {
		return r.Hook || r.State == rutter.Synced || r.State == ""
	})
}

func differenceOf(s Situation, r rutter.ResourceReport) Difference {
	d := Difference{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, State: r.State, File: r.Origin.File, Line: r.Origin.Line}
	f := Facts{Application: s.Application, SelfHeal: s.Policy.Automated && s.Policy.SelfHeal && s.Hold == "", Resource: r, Writers: s.Writers[r.Ref]}
	if len(r.Diffs) == 0 || r.RequiresPruning || r.State == rutter.SyncUnknown {
		cause := ClassifyObject(f)
		d.Cause = &cause
	}
	if r.Drift != nil {
		d.Since = rfc3339(r.Drift.Since)
	}
	for _, diff := range r.Diffs {
		path, _ := fieldpath.Parse(diff.Path)
		x := Field{FieldDiff: diff, WrittenAt: stamp(writerOf(f.Writers, diff.Manager, path)), Cause: Classify(diff, f)}
		if known, ok := driftOf(r.Drift, diff.Path); ok {
			x.Since, x.Returned, x.ContestedUntil = rfc3339(known.Since), known.Returned, rfc3339(known.RestsUntil)
		}
		d.Fields = append(d.Fields, x)
	}
	return d
}
