package generate

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// lack is a parameter that a text refers to and its generator does not give.
type lack struct{ field, key string }

// placing matches the fields that say what an Application deploys and where to.
// None of them can mean an expression that was left as it was written, which
// elsewhere is a warning: a value of a chart may well be a template itself.
var placing = regexp.MustCompile(`^spec\.template\.(metadata\.name|spec\.(project|destination\.(server|name|namespace)|sources?(\[\d+\])?\.(repoURL|path|targetRevision|chart|ref)))$`)

// lacks are the parameters without which the Application of an element would go
// nowhere, or somewhere else.
func (r *renderer) lacks() []lack {
	var out []lack
	for _, m := range r.missing {
		if placing.MatchString(m.field) {
			out = append(out, m)
		}
	}
	for _, field := range r.blanks {
		if placing.MatchString(field) {
			out = append(out, lack{field: field})
		}
	}
	return out
}

// refuseLacks gives elements that lack parameters an error that says who gives
// what, and how it is written right.
func refuseLacks(elements []Element) {
	for i := range elements {
		e := &elements[i]
		switch {
		case len(e.lacks) == 0:
		case e.Err != nil: // it has been named already
			e.Err = rutter.Errorf(rutter.CodeInvalid, "%w; %s", e.Err, e.lacking(elements))
		default:
			e.Err = rutter.Errorf(rutter.CodeInvalid, "%s: %s", e.label(), e.lacking(elements))
		}
	}
}

// lacking says what the first of the missing parameters is about.
func (e *Element) lacking(all []Element) string {
	l := e.lacks[0]
	if l.key == "" {
		return fmt.Sprintf("%s: a parameter is missing here and was printed as %q; it has %s", l.field, noValue, e.has())
	}
	said := fmt.Sprintf("%s: no parameter %q comes from %s, which gives %s", l.field, l.key, e.Producer, e.has())
	for i := range all {
		other := &all[i]
		if _, gives := other.Params[l.key]; gives && other.Producer != e.Producer {
			return said + fmt.Sprintf("; %s gives it, but to elements of its own: to combine the two, put both into one matrix generator", other.Producer)
		}
	}
	if near := nearest(l.key, slices.Sorted(maps.Keys(e.Params))); near != "" {
		return said + fmt.Sprintf("; did you mean %q?", near)
	}
	return said + fmt.Sprintf("; give it to each element (with a list generator as %s: …, or below values), or write the value itself", l.key)
}

// has names the parameters of an element.
func (e *Element) has() string {
	const most = 12
	keys := slices.Sorted(maps.Keys(e.Params))
	keys = slices.DeleteFunc(keys, func(k string) bool { return strings.HasPrefix(k, "path[") })
	if len(keys) == 0 {
		return "none"
	}
	if more := len(keys) - most; more > 0 {
		return strings.Join(keys[:most], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(keys, ", ")
}

// nearest is the key that differs least, if one is near enough to be meant.
func nearest(key string, keys []string) string {
	best, found := len(key)/2+1, ""
	for _, k := range keys {
		if d := distance(strings.ToLower(key), strings.ToLower(k)); d < best {
			best, found = d, k
		}
	}
	return found
}

// distance counts the letters to add, drop or replace between two short texts.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		left := row[0]
		row[0] = i + 1
		for j := range len(b) {
			up := row[j+1]
			cost := left
			if a[i] != b[j] {
				cost++
			}
			row[j+1] = min(cost, up+1, row[j]+1)
			left = up
		}
	}
	return row[len(b)]
}

// incomplete says what an Application must say and does not; the API of the
// reference asks for the same of templates.
func incomplete(app *v1alpha1.Application) error {
	switch d := app.Spec.Destination; {
	case app.Spec.Project == "":
		return rutter.Errorf(rutter.CodeInvalid, "spec.template.spec.project: is missing; write project: default, or the name of an AppProject")
	case d.Server == "" && d.Name == "":
		return rutter.Errorf(rutter.CodeInvalid, "spec.template.spec.destination: names no cluster; set server or name")
	case app.Spec.Source != nil && len(app.Spec.Sources) == 0:
		return incompleteSource("spec.template.spec.source", app.Spec.Source, false)
	}
	for i := range app.Spec.Sources {
		if err := incompleteSource(fmt.Sprintf("spec.template.spec.sources[%d]", i), &app.Spec.Sources[i], true); err != nil {
			return err
		}
	}
	return nil
}

// incompleteSource says so of a source; one of several may be there for the others
// to refer to. A patch may have taken away what the template had.
func incompleteSource(field string, s *v1alpha1.ApplicationSource, several bool) error {
	switch {
	case s.RepoURL == "":
		return rutter.Errorf(rutter.CodeInvalid, "%s.repoURL: is missing", field)
	case s.Path == "" && s.Chart == "" && (!several || s.Ref == ""):
		return rutter.Errorf(rutter.CodeInvalid, "%s: names nothing to deploy; set path (\".\" for the root of the repository) or chart", field)
	case s.Kustomize == nil:
		return nil
	}
	for i, r := range s.Kustomize.Replicas {
		if _, err := strconv.Atoi(r.Count.String()); err != nil {
			return rutter.Errorf(rutter.CodeInvalid, "%s.kustomize.replicas[%d].count: %q is not a number", field, i, r.Count.String())
		}
	}
	return nil
}
