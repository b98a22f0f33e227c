package argo

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
)

// outcome is what one evaluation of a set came to.
type outcome struct {
	result   generate.Result
	decision generate.Decision
	// unsure says that removals wait, and that it is not known at the moment which
	// of them are still to: what was shown of them stays.
	unsure bool
	// written are the changes that were carried out.
	written []generate.Change
	// refusals are the Applications that cannot be what is generated, and failures
	// what could not be written.
	refusals []error
	failures []failure
	// requeue is when what waits is looked at again; 0 is never.
	requeue time.Duration
}

// failure is a change that could not be written.
type failure struct {
	verb generate.Verb
	err  error
}

// reason is the reference's word for it.
func (f failure) reason() string {
	switch f.verb {
	case generate.Create:
		return v1alpha1.ApplicationSetReasonCreateApplicationError
	case generate.Delete, generate.Release:
		return v1alpha1.ApplicationSetReasonDeleteApplicationError
	default:
		return v1alpha1.ApplicationSetReasonUpdateApplicationError
	}
}

// count is how many Applications a verb was carried out on.
func (o *outcome) count(verb generate.Verb) (n int) {
	for _, c := range o.written {
		if c.Verb == verb {
			n++
		}
	}
	return n
}

// refused reports whether something that may appear, such as a project or a
// cluster, keeps an Application from being written.
func (o *outcome) refused() bool {
	return slices.ContainsFunc(o.decision.Changes, func(c generate.Change) bool { return c.Verb == generate.Refuse })
}

// problems lists, in words, what is wrong, and the reason of the first kind
// (reference 5.1); empty when all is well. What waits for somebody is not wrong.
func (o *outcome) problems() (out []string, reason string) {
	type kind struct {
		reason string
		errs   []error
	}
	kinds := []kind{
		{v1alpha1.ApplicationSetReasonGenerationFromParamsError, o.result.Errors},
		{v1alpha1.ApplicationSetReasonRenderTemplateParamsError, elementErrors(o.result.Elements)},
		{v1alpha1.ApplicationSetReasonApplicationValidationError, slices.Concat(o.refusals, o.decision.Errors)},
	}
	for _, f := range o.failures {
		kinds = append(kinds, kind{f.reason(), []error{f.err}})
	}
	for _, k := range kinds {
		if len(k.errs) > 0 && reason == "" {
			reason = k.reason
		}
		out = append(out, texts(k.errs)...)
	}
	return slices.Compact(out), reason
}

// warnings are those of the set and of its elements, each once and in order.
func (o *outcome) warnings() []string {
	all := map[string]bool{}
	for _, w := range o.result.Warnings {
		all[w] = true
	}
	for i := range o.result.Elements {
		for _, w := range o.result.Elements[i].Warnings {
			all[w] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// pending counts the changes that were decided.
func (o *outcome) pending() (n int) {
	n = len(o.decision.Upkeep)
	for _, c := range o.decision.Changes {
		switch c.Verb {
		case generate.Create, generate.Update, generate.Delete, generate.Release:
			n++
		case generate.Keep, generate.Hold, generate.Refuse:
		}
	}
	return n
}

// texts are those of some errors, in order.
func texts(errs []error) []string {
	out := make([]string, 0, len(errs))
	for _, err := range errs {
		out = append(out, err.Error())
	}
	slices.Sort(out)
	return out
}

func elementErrors(elements []generate.Element) []error {
	var out []error
	for i := range elements {
		if elements[i].Err != nil {
			out = append(out, elements[i].Err)
		}
	}
	return out
}

const (
	// shownProblems are as many as a condition spells out, each in so many bytes.
	shownProblems = 3
	shownBytes    = 1000
	// shownNames are as many of the Applications of a held plan.
	shownNames = 20
)

// few puts the first of some texts in one, and says how many more there are.
func few(texts []string, most int, sep string) string {
	shown := make([]string, 0, most)
	for _, t := range texts[:min(len(texts), most)] {
		if len(t) > shownBytes {
			t = strings.ToValidUTF8(t[:shownBytes], "") + "…"
		}
		shown = append(shown, t)
	}
	out := strings.Join(shown, sep)
	if more := len(texts) - len(shown); more > 0 {
		out += fmt.Sprintf(", and %d more", more)
	}
	return out
}
