package generate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/strategicpatch"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

const patchField = "spec.templatePatch"

// patch renders spec.templatePatch and merges it onto the Application. The
// project and the namespace stay: they decide what the Application may do.
func (ev *evaluator) patch(r *renderer, e *Element, app *v1alpha1.Application) (*v1alpha1.Application, error) {
	text, err := r.text(patchField, *ev.set.Spec.TemplatePatch)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(text) == "" {
		return app, nil
	}
	read := ev.readPatch(text)
	e.Warnings = append(e.Warnings, read.warnings...)
	if read.err != nil {
		return nil, read.err
	}
	original, err := json.Marshal(app)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInternal, "%s: %w", patchField, err)
	}
	merged, err := mergePatch(original, read.patch)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "%s: cannot be merged: %w", patchField, err)
	}
	out := &v1alpha1.Application{}
	if err := json.Unmarshal(merged, out); err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "%s: the result is not an Application: %w", patchField, err)
	}
	out.TypeMeta = app.TypeMeta
	if out.Spec.Project != app.Spec.Project || out.Namespace != app.Namespace {
		e.Warnings = append(e.Warnings, patchField+": changes neither spec.project nor metadata.namespace, which decide what the Application may do; write a template for them")
	}
	out.Namespace = app.Namespace
	out.Spec.Project = app.Spec.Project
	e.Warnings = append(e.Warnings, lostByPatch(app, out)...)
	return out, nil
}

// readPatches is how many rendered patches are remembered: those of neighbours
// are often the same text.
const readPatches = 1000

// patchText is a rendered patch that was read.
type patchText struct {
	patch    []byte
	warnings []string
	err      error
}

// readPatch reads each text once, unless there are very many.
func (ev *evaluator) readPatch(text string) patchText {
	if known, ok := ev.patches[text]; ok {
		return known
	}
	if ev.patches == nil || len(ev.patches) == readPatches {
		ev.patches = map[string]patchText{}
	}
	patch, warnings, err := parsePatch(text)
	ev.patches[text] = patchText{patch: patch, warnings: warnings, err: err}
	return ev.patches[text]
}

// parsePatch reads a rendered patch. An empty spec or metadata says nothing: it
// is what is left of one whose lines were all conditional, and must not wipe
// what it would have added to.
func parsePatch(text string) (patch []byte, warnings []string, err error) {
	if patch, err = yaml.YAMLToJSONStrict([]byte(text)); err != nil {
		return nil, nil, rutter.Errorf(rutter.CodeInvalid, "%s: is not YAML after rendering: %s", patchField, oneLine(err.Error()))
	}
	var shape v1alpha1.Application
	unknown, err := kjson.UnmarshalStrict(patch, &shape)
	if err != nil {
		return nil, nil, rutter.Errorf(rutter.CodeInvalid, "%s: is not an Application: %w", patchField, err)
	}
	for _, u := range unknown {
		warnings = append(warnings, fmt.Sprintf("%s: %s; it is ignored", patchField, u))
	}
	if !bytes.Contains(patch, []byte("null")) {
		return patch, warnings, nil
	}
	tree, err := toTree(patch)
	object, ok := tree.(map[string]any)
	if err != nil || !ok {
		return []byte("{}"), warnings, nil //nolint:nilerr // the text holds nothing but null
	}
	for _, k := range []string{"metadata", "spec"} {
		if v, there := object[k]; there && v == nil {
			delete(object, k)
			warnings = append(warnings, fmt.Sprintf("%s: %s is empty after rendering; it changes nothing", patchField, k))
		}
	}
	if patch, err = json.Marshal(object); err != nil {
		return nil, nil, rutter.Errorf(rutter.CodeInternal, "%s: %w", patchField, err)
	}
	return patch, warnings, nil
}

// mergePatch merges as the reference does. Of all fields only finalizers and
// owners are merged item by item; patches that name neither of these, nor a
// directive, are merged map by map, which is the same and much quicker.
func mergePatch(original, patch []byte) ([]byte, error) {
	for _, special := range []string{`"$`, `"finalizers"`, `"ownerReferences"`} {
		if bytes.Contains(patch, []byte(special)) {
			return strategicpatch.StrategicMergePatch(original, patch, v1alpha1.Application{}) //nolint:wrapcheck // the caller names the field
		}
	}
	to, err := toTree(original)
	if err != nil {
		return nil, err
	}
	from, err := toTree(patch)
	if err != nil {
		return nil, err
	}
	target, _ := to.(map[string]any)
	changes, _ := from.(map[string]any)
	return json.Marshal(mergeTrees(target, changes)) //nolint:wrapcheck // the caller names the field
}

// mergeTrees writes changes into target; null takes a field away.
func mergeTrees(target, changes map[string]any) map[string]any {
	if target == nil {
		target = make(map[string]any, len(changes))
	}
	for k, v := range changes {
		inner, isMap := v.(map[string]any)
		switch {
		case v == nil:
			delete(target, k)
		case isMap:
			old, _ := target[k].(map[string]any)
			target[k] = mergeTrees(old, inner)
		default:
			target[k] = v
		}
	}
	return target
}

// lostByPatch warns about what an Application cannot do without.
func lostByPatch(before, after *v1alpha1.Application) []string {
	var lost []string
	had := before.Spec.Source != nil || len(before.Spec.Sources) > 0 || before.Spec.SourceHydrator != nil
	has := after.Spec.Source != nil || len(after.Spec.Sources) > 0 || after.Spec.SourceHydrator != nil
	if had && !has {
		lost = append(lost, patchField+": takes the Application's sources away")
	}
	d := after.Spec.Destination
	if d.Server == "" && d.Name == "" && (before.Spec.Destination.Server != "" || before.Spec.Destination.Name != "") {
		lost = append(lost, patchField+": takes the Application's destination away")
	}
	return lost
}
