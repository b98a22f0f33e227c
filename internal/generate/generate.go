package generate

import (
	"cmp"
	"slices"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// Completeness says how much of a set's answer is known.
type Completeness string

// The degrees of knowing.
const (
	// Complete means that every generator answered and every element has a name;
	// what is not among the elements is not wanted.
	Complete Completeness = "complete"
	// Partial means that some elements are known and others are not.
	Partial Completeness = "partial"
	// Failed means that nothing is known.
	Failed Completeness = "failed"
)

// Element is one set of parameters and the Application made of it.
type Element struct {
	// Producer is the generator, such as "generators[0].git".
	Producer string
	// Index is the 0-based position among the producer's elements.
	Index int
	// Params are what the template was rendered with.
	Params map[string]any
	// Name is the rendered name; it may be set although Err is.
	Name string
	// Application is nil when Err is set.
	Application *v1alpha1.Application
	// Err says why this element, and no other, has no Application.
	Err error
	// Stale says that its parameters, or some of them, are those of the last good
	// answer: a generator could not look this time.
	Stale bool
	// Warnings are for the user, one line each.
	Warnings []string

	origins []origin
	lacks   []lack
}

// Producers names the generator that each top-level parameter came from.
func (e *Element) Producers() map[string]string {
	out := make(map[string]string, len(e.Params))
	s := paramSet{origins: e.origins}
	for k := range e.Params {
		out[k] = s.origin(k)
	}
	return out
}

// Result is the answer of a set.
type Result struct {
	// Applications are those of the good elements, by name.
	Applications []*v1alpha1.Application
	// Elements are all elements in the order of the generators.
	Elements     []Element
	Completeness Completeness
	// Errors are those of whole generators; elements have their own.
	Errors []error
	// Warnings concern the set and not one element.
	Warnings []string
	// Memory is to be kept and given to the next evaluation in Options.Memory.
	Memory Memory
	// Requeue is when the set is due again though nothing is heard; 0 is never.
	Requeue time.Duration
}

// Options adjusts an evaluation. The zero value is the reference's default.
type Options struct {
	// NewFileGlobbing makes * stay within a path segment in git files patterns
	// and ** cross segments. Otherwise * crosses segments, as in git pathspecs.
	NewFileGlobbing bool
	// ReferenceCollisions gives sets that declare no AnnotationCollisions the
	// reference's rules for parameters that two generators of a matrix have.
	ReferenceCollisions bool
	// ReferenceTypes renders every expression as a text, as the reference does,
	// in sets that have no AnnotationTypedValues.
	ReferenceTypes bool
	// Memory is that of the last evaluation, as Result.Memory was.
	Memory Memory
	// Requeue are the pauses between evaluations where a set has none.
	Requeue RequeueDefaults
}

// Generate evaluates a set with default options.
func Generate(set *v1alpha1.ApplicationSet, facts Facts) Result {
	return Options{}.Generate(set, facts)
}

// Generate evaluates a set.
func (o Options) Generate(set *v1alpha1.ApplicationSet, facts Facts) Result {
	nodes := nodesOf(set)
	res := Result{Warnings: strategyWarnings(set), Requeue: o.Requeue.of(nodes)}
	ev, err := newEvaluator(set, facts, o, nodes)
	if err != nil {
		res.Completeness, res.Errors, res.Memory = Failed, []error{err}, o.Memory
		return res
	}
	failed := 0
	for _, n := range nodes {
		out := ev.runWhole(n)
		res.Errors = append(res.Errors, out.errs...)
		if len(out.errs) > 0 && len(out.sets) == 0 {
			failed++
		}
		res.Elements = append(res.Elements, ev.elements(n, out.sets)...)
	}
	res.Errors = uniqueErrors(res.Errors)
	res.Warnings = append(res.Warnings, ev.warnings...)
	res.Memory = ev.memory
	refuseLacks(res.Elements)
	rejectDuplicates(res.Elements)
	for i := range res.Elements {
		if app := res.Elements[i].Application; app != nil {
			res.Applications = append(res.Applications, app)
		}
	}
	slices.SortFunc(res.Applications, func(a, b *v1alpha1.Application) int { return cmp.Compare(a.Name, b.Name) })
	res.Completeness = completeness(res, failed == len(nodes))
	return res
}

// checkSet finds what makes all elements of a set impossible.
func checkSet(set *v1alpha1.ApplicationSet, nodes []node) error {
	if len(nodes) == 0 {
		return rutter.Errorf(rutter.CodeInvalid, "spec.generators: is empty, want at least one generator")
	}
	if set.Spec.GoTemplate {
		return checkOptions(set.Spec.GoTemplateOptions)
	}
	return nil
}

// elements renders the template for each of a producer's sets of parameters.
func (ev *evaluator) elements(n node, sets []paramSet) []Element {
	tree, warnings, err := effectiveTemplate(ev.set, n)
	ev.warn(warnings...)
	var template *program
	if err == nil {
		template, err = compile(tree)
	}
	elements := make([]Element, 0, len(sets))
	for i, s := range sets {
		e := Element{Producer: n.producer(), Index: i, Params: s.params, Stale: s.stale, origins: s.origins}
		e.Warnings = append(e.Warnings, s.warnings...)
		switch {
		case s.err != nil:
			e.Err = s.err
		case err != nil:
			e.Err = err
		default:
			ev.render(&e, template)
		}
		elements = append(elements, e)
	}
	nameElements(elements)
	return elements
}

// completeness decides whether what is missing from the elements is unwanted.
// An element without a valid name of its own may stand for any Application.
func completeness(res Result, allFailed bool) Completeness {
	switch {
	case allFailed:
		return Failed
	case len(res.Errors) > 0:
		return Partial
	}
	for _, e := range res.Elements {
		if e.Err != nil && (nameError(e.Name) != nil || rutter.CodeOf(e.Err) == rutter.CodeConflict) {
			return Partial
		}
	}
	return Complete
}

// strategyWarnings names what the set asks for and nobody does yet.
func strategyWarnings(set *v1alpha1.ApplicationSet) []string {
	if s := set.Spec.Strategy; s != nil && s.Type == "RollingSync" {
		return []string{"spec.strategy: RollingSync is not acted on yet: all Applications change at once"}
	}
	return nil
}

// uniqueErrors drops repetitions, which a matrix makes of an inner failure.
func uniqueErrors(errs []error) []error {
	seen := map[string]bool{}
	return slices.DeleteFunc(errs, func(err error) bool {
		text := err.Error()
		if seen[text] {
			return true
		}
		seen[text] = true
		return false
	})
}
