package daemon

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/dialect/argo"
	"github.com/rutterhq/rutter/internal/preview"
)

// declared is one object of the dialect and what declares it.
type declared struct {
	object runtime.Object
	file   string
	// parent is the Application that renders it.
	parent string
	// live says that only the control plane has it.
	live bool
}

// parsedFile is what a file declares.
type parsedFile struct {
	objects  []runtime.Object
	problems []error
}

// discover reads the declarations in the YAML files below the roots.
func (p *planner) discover(ctx context.Context, s *planSide) error {
	for _, root := range p.cfg.Roots {
		if err := p.walk(ctx, s, path.Clean(root)); err != nil {
			return rutter.Errorf(cmp.Or(rutter.CodeOf(err), rutter.CodeInvalid), "look for Applications in %s of %s: %w", root, s.name, err)
		}
	}
	return nil
}

// walk goes through a folder. Hidden folders, modules and the insides of charts
// hold no declarations. A root that is not there holds none either.
func (p *planner) walk(ctx context.Context, s *planSide, dir string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := s.snap.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	chart := slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == "Chart.yaml" })
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "."), e.Name() == "node_modules":
		case e.IsDir() && chart && slices.Contains([]string{"templates", "charts", "crds"}, e.Name()):
		case e.IsDir():
			if err := p.walk(ctx, s, name); err != nil {
				return err
			}
		case e.Type().IsRegular() && isYAML(e.Name()):
			if err := p.readDeclarations(s, name); err != nil {
				return err
			}
		}
	}
	return nil
}

func isYAML(name string) bool {
	return strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
}

// declares finds files that are worth parsing.
var declares = regexp.MustCompile(`(?m)^[\s"'{,-]*kind["']?\s*:\s*["']?(Application|ApplicationSet|AppProject|List|ApplicationList|ApplicationSetList|AppProjectList)["']?\s*(#.*|,.*|})?$`)

// readDeclarations notes what a file declares. What is the same on both sides is
// read and parsed once; what is known to declare nothing is not read.
func (p *planner) readDeclarations(s *planSide, name string) error {
	hash, err := s.snap.Hash(rutter.InputFile, name)
	if err != nil {
		return err //nolint:wrapcheck // the caller says what was done
	}
	if hash == "" || p.barren.has(hash) {
		return nil
	}
	file, ok := p.files[hash]
	if !ok {
		data, err := s.snap.ReadFile(name)
		if err != nil {
			return err
		}
		file = parseDeclarations(data, name)
		p.files[hash] = file
	}
	if len(file.objects) == 0 && len(file.problems) == 0 {
		p.barren.add(hash)
		return nil
	}
	for _, o := range file.objects {
		s.files = append(s.files, declared{object: o, file: name})
	}
	for _, err := range file.problems {
		s.unread = append(s.unread, name)
		s.problem(name, err)
	}
	return nil
}

// keepUnread takes what the base declares in files that cannot be read on the head
// as declared there still: a slip of the pen takes nothing out of the fleet.
func (p *planner) keepUnread(s *planSide) {
	here, read := map[[3]string]bool{}, map[string]bool{}
	for _, d := range s.files {
		here[nameOf(d.object)], read[d.file] = true, true
	}
	for _, d := range p.base.files {
		if !read[d.file] && !slices.Contains(s.unread, d.file) {
			read[d.file] = true
			p.checkRead(s, d.file)
		}
		if slices.Contains(s.unread, d.file) && !here[nameOf(d.object)] {
			s.files = append(s.files, d)
		}
	}
}

// checkRead notes a file that declares nothing any more because it is no YAML, as
// one with marks of a conflict.
func (p *planner) checkRead(s *planSide, name string) {
	data, err := s.snap.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		_, err = argo.Decode(data, name)
	}
	if err != nil {
		s.unread = append(s.unread, name)
		s.problem(name, err)
	}
}

// nameOf is what tells declarations apart.
func nameOf(o runtime.Object) [3]string {
	m, ok := o.(metav1.Object)
	if !ok {
		return [3]string{}
	}
	return [3]string{fmt.Sprintf("%T", o), m.GetNamespace(), m.GetName()}
}

// parseDeclarations reads what a plan follows and leaves out what is none:
// patches of Applications, templates, other kinds.
func parseDeclarations(data []byte, name string) parsedFile {
	if !bytes.Contains(data, []byte("argoproj.io/")) || !declares.Match(data) {
		return parsedFile{}
	}
	objects, err := argo.Decode(data, name)
	var out parsedFile
	for _, o := range objects {
		if complete(o) {
			out.objects = append(out.objects, o)
		}
	}
	if err != nil {
		out.problems = append(out.problems, err)
	}
	return out
}

// complete reports whether an object can stand for itself: a patch of an
// Application has no source or no destination.
func complete(o runtime.Object) bool {
	switch o := o.(type) {
	case *v1alpha1.Application:
		return o.Name != "" && (o.Spec.Source != nil || len(o.Spec.Sources) > 0 || o.Spec.SourceHydrator != nil) &&
			(o.Spec.Destination.Server != "" || o.Spec.Destination.Name != "")
	case *v1alpha1.ApplicationSet:
		return o.Name != "" && len(o.Spec.Generators) > 0
	case *v1alpha1.AppProject:
		return o.Name != ""
	}
	return false
}

// problem notes what could not be looked at.
func (s *planSide) problem(where string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems = append(s.problems, preview.Problem{Where: where, Message: err.Error()})
}
