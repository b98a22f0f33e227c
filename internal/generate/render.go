package generate

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	kjson "sigs.k8s.io/json"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

const (
	// resourcesFinalizer makes the deletion of an Application delete its objects.
	resourcesFinalizer = "resources-finalizer.argocd.argoproj.io"
	// maxNameLength is that of any object's name.
	maxNameLength = 253

	applicationKind = "Application"
)

// effectiveTemplate is the template of a generator as a tree: its own fields
// where it has any, and those of the set elsewhere.
func effectiveTemplate(set *v1alpha1.ApplicationSet, n node) (map[string]any, []string, error) {
	base, err := treeOf(set.Spec.Template)
	if err != nil {
		return nil, nil, rutter.Errorf(rutter.CodeInvalid, "spec.template: %w", err)
	}
	if n.template == nil || len(n.template.Raw) == 0 {
		return base, nil, nil
	}
	field := n.producer() + ".template"
	value, err := toTree(n.template.Raw)
	if err != nil {
		return nil, nil, rutter.Errorf(rutter.CodeInvalid, "%s: %w", field, err)
	}
	own, ok := value.(map[string]any)
	if !ok {
		return nil, nil, rutter.Errorf(rutter.CodeInvalid, "%s: is %s, want an object", field, kindOf(value))
	}
	warnings, err := checkTemplate(field, own)
	if err != nil {
		return nil, nil, err
	}
	return fillTemplate(own, base), warnings, nil
}

// checkTemplate finds the fields of a generator's template that do not exist,
// and values that are of no use. An expression may stand where a boolean, a
// number or a list belongs: only its value must be one.
func checkTemplate(field string, tree map[string]any) ([]string, error) {
	c := compiler{program: &program{}}
	plain, _ := c.walk(tree, reflect.TypeFor[v1alpha1.ApplicationSetTemplate](), field, nil)
	raw, err := json.Marshal(plain)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "%s: %w", field, err)
	}
	var shape v1alpha1.ApplicationSetTemplate
	unknown, err := kjson.UnmarshalStrict(raw, &shape)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "%s: %w", field, err)
	}
	var warnings []string
	for _, u := range append(unknown, c.unknown...) {
		warnings = append(warnings, fmt.Sprintf("%s: %s; it is ignored", field, u))
	}
	return warnings, nil
}

// fillTemplate completes a template with the set's. Lists, and free-form
// values of a chart, are taken from one of the two as a whole.
func fillTemplate(own, base map[string]any) map[string]any {
	out := make(map[string]any, len(base))
	maps.Copy(out, base)
	for k, v := range own {
		om, oMap := v.(map[string]any)
		bm, bMap := base[k].(map[string]any)
		switch {
		case oMap && bMap && k != "valuesObject":
			out[k] = fillTemplate(om, bm)
		case !isEmpty(v):
			out[k] = v
		}
	}
	return out
}

// render makes the Application of an element, or says in the element why not.
func (ev *evaluator) render(e *Element, template *program) {
	r := renderer{engine: ev.engine, params: e.Params}
	rendered, err := template.run(&r, ev.typed)
	if err != nil {
		e.Err = err
		// The name by itself, so that a mistake elsewhere is reported with it.
		alone := renderer{engine: ev.engine, params: e.Params}
		if name, err := alone.text("spec.template.metadata.name", template.name); err == nil && !ev.patchNames() {
			e.Name = name
		}
		e.Warnings = append(e.Warnings, r.warnings(e.Producer)...)
		return
	}
	app := ev.application(rendered)
	e.Name = app.Name
	if ev.set.Spec.TemplatePatch != nil {
		patched, failed := ev.patch(&r, e, app)
		switch app, err = patched, failed; {
		case err == nil:
			e.Name = app.Name
		case ev.patchNames():
			e.Name = "" // which Application it is, is not known: it may stand for any
		}
	}
	if e.lacks = r.lacks(); len(e.lacks) > 0 {
		e.Err = incomplete(app)
		return // refuseLacks says the rest, once all elements are known
	}
	e.Warnings = append(e.Warnings, r.warnings(e.Producer)...)
	if err == nil {
		err = nameError(e.Name)
	}
	if err == nil {
		err = incomplete(app)
	}
	if err != nil {
		e.Err = err
		return
	}
	if Preserves(ev.set) && freeWorkloads(app) {
		e.Warnings = append(e.Warnings, "spec.syncPolicy.preserveResourcesOnDeletion: the finalizer "+resourcesFinalizer+" of the template is left out, since it would delete what is to stay")
	}
	e.Application = app
}

// patchNames reports whether the patch may give Applications another name.
func (ev *evaluator) patchNames() bool {
	p := ev.set.Spec.TemplatePatch
	return p != nil && strings.Contains(*p, "metadata")
}

// application adds to a rendered template what every generated Application has.
func (ev *evaluator) application(t *v1alpha1.ApplicationSetTemplate) *v1alpha1.Application {
	app := &v1alpha1.Application{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: applicationKind},
		ObjectMeta: metav1.ObjectMeta{
			Name: t.Name, Namespace: ev.set.Namespace,
			Labels: t.Labels, Annotations: t.Annotations, Finalizers: t.Finalizers,
		},
		Spec: t.Spec,
	}
	if len(app.Finalizers) == 0 && !Preserves(ev.set) {
		app.Finalizers = []string{resourcesFinalizer}
	}
	return app
}

// nameError says what is wrong with the name of an Application.
func nameError(name string) error {
	switch {
	case name == "":
		return rutter.Errorf(rutter.CodeInvalid, "spec.template.metadata.name: is empty after rendering")
	case strings.Contains(name, "{{"):
		return rutter.Errorf(rutter.CodeInvalid, "spec.template.metadata.name: %q has a parameter that the generator does not produce", name)
	case len(name) > maxNameLength:
		return rutter.Errorf(rutter.CodeInvalid, "spec.template.metadata.name: has %d characters, at most %d are allowed", len(name), maxNameLength)
	}
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return rutter.Errorf(rutter.CodeInvalid, "spec.template.metadata.name: %q is not a name: %s", name, problems[0])
	}
	return nil
}

// nameElements completes the errors of a producer's elements with which
// element it is.
func nameElements(elements []Element) {
	for i := range elements {
		if e := &elements[i]; e.Err != nil {
			e.Err = rutter.Errorf(rutter.CodeOf(e.Err), "%s: %w", e.label(), e.Err)
		}
	}
}

// label names an element for people: its producer, place and parameters.
func (e *Element) label() string {
	label := fmt.Sprintf("%s element %d", e.Producer, e.Index)
	if about := distinguish(e.Params); about != "" {
		label += " (" + about + ")"
	}
	return label
}

// rejectDuplicates gives all elements that share a name an error that names
// the others: none of them is more right than another.
func rejectDuplicates(elements []Element) {
	byName := map[string][]int{}
	for i, e := range elements {
		if e.Application != nil {
			byName[e.Name] = append(byName[e.Name], i)
		}
	}
	for name, same := range byName {
		if len(same) < 2 {
			continue
		}
		labels := make([]string, len(same))
		for i, at := range same {
			labels[i] = elements[at].label()
		}
		for i, at := range same {
			others := slices.Delete(slices.Clone(labels), i, i+1)
			if len(others) > 3 {
				others = append(others[:3], fmt.Sprintf("%d more", len(others)-3))
			}
			elements[at].Err = rutter.Errorf(rutter.CodeConflict, "%s: the name %q is also that of %s; make spec.template.metadata.name unique",
				labels[i], name, strings.Join(others, ", "))
			elements[at].Application = nil
		}
	}
}
