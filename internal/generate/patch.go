package generate

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/strategicpatch"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// patch renders spec.templatePatch and merges it onto the Application. The
// project and the namespace stay: they decide what the Application may do.
func (ev *evaluator) patch(r *renderer, e *Element, app *v1alpha1.Application) (*v1alpha1.Application, error) {
	const field = "spec.templatePatch"
	text, err := r.text(field, *ev.set.Spec.TemplatePatch)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(text) == "" {
		return app, nil
	}
	patch, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "%s: is not YAML after rendering: %s", field, oneLine(err.Error()))
	}
	var shape v1alpha1.Application
	unknown, err := kjson.UnmarshalStrict(patch, &shape)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "%s: is not an Application: %w", field, err)
	}
	for _, u := range unknown {
		e.Warnings = append(e.Warnings, fmt.Sprintf("%s: %s; it is ignored", field, u))
	}
	original, err := json.Marshal(app)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInternal, "%s: %w", field, err)
	}
	merged, err := strategicpatch.StrategicMergePatch(original, patch, v1alpha1.Application{})
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "%s: cannot be merged: %w", field, err)
	}
	out := &v1alpha1.Application{}
	if err := json.Unmarshal(merged, out); err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "%s: the result is not an Application: %w", field, err)
	}
	out.TypeMeta = app.TypeMeta
	out.Namespace = app.Namespace
	out.Spec.Project = app.Spec.Project
	return out, nil
}
