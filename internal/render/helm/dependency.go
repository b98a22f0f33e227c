package helm

import (
	"fmt"
	"path"
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/record"
)

// resolver finds the dependencies of a chart that are missing in its charts/.
type resolver struct {
	r  *Renderer
	in Input
}

// family loads the chart in a folder of a repository with everything that it
// depends on. A dependency with a file:// repository is taken from the same
// tree, any other from the repository that it names.
func (s resolver) family(repo *record.FS, dir string, depth int) (*family, error) {
	if depth == 0 {
		return nil, rutter.Errorf(rutter.CodeInvalid, "%s: the chart's dependencies are nested too deeply", dir)
	}
	l, err := s.r.load(repo, dir)
	if err != nil {
		return nil, err
	}
	f := &family{loaded: l, at: dir}
	missing := missing(l.chart)
	if len(missing) == 0 {
		return f, nil
	}
	if err := checkLock(l.chart); err != nil {
		return nil, s.failed(f, missing[0], err)
	}
	for _, req := range missing {
		if f.has(req) {
			continue // another name (alias) for the same chart
		}
		sub, err := s.find(repo, dir, f.chart, req, depth)
		if err != nil {
			return nil, s.failed(f, req, err)
		}
		f.found = append(f.found, sub)
	}
	return f, nil
}

// missing lists the dependencies of which charts/ holds none of that name, which is all that Helm looks at.
func missing(c *chart.Chart) []*chart.Dependency {
	there := map[string]bool{}
	for _, d := range c.Dependencies() {
		there[d.Name()] = true
	}
	var out []*chart.Dependency
	for _, req := range c.Metadata.Dependencies {
		if !there[req.Name] {
			out = append(out, req)
		}
	}
	return out
}

func (f *family) has(req *chart.Dependency) bool {
	for _, sub := range f.found {
		if fits(req, sub.chart) {
			return true
		}
	}
	return false
}

// fits reports whether a chart is what a dependency asks for.
func fits(req *chart.Dependency, c *chart.Chart) bool {
	return req.Name == c.Name() && chartutil.IsCompatibleRange(req.Version, c.Metadata.Version)
}

// find gets one dependency.
func (s resolver) find(repo *record.FS, dir string, c *chart.Chart, req *chart.Dependency, depth int) (*family, error) {
	var sub *family
	var err error
	switch local, isLocal := strings.CutPrefix(req.Repository, "file://"); {
	case isLocal && path.IsAbs(local):
		err = rutter.Errorf(rutter.CodeInvalid, "an absolute path is on somebody's machine: use one relative to the chart")
	case isLocal:
		var at string
		if at, err = record.Clean(path.Join(dir, local)); err == nil {
			sub, err = s.family(repo, at, depth-1)
		}
	case req.Repository == "":
		err = rutter.Errorf(rutter.CodeNotFound, "it is missing in charts/, and no repository is named: add the chart to charts/, or set repository")
	default:
		sub, err = s.fetch(req, lockedVersion(c, req))
	}
	if err != nil {
		return nil, err
	}
	if !fits(req, sub.chart) {
		return nil, rutter.Errorf(rutter.CodeInvalid, "what was found is chart %s %s", sub.chart.Name(), sub.chart.Metadata.Version)
	}
	return sub, nil
}

// fetch gets a dependency from its repository. What it depends on itself lies
// in its own charts/, as in every packaged chart.
func (s resolver) fetch(req *chart.Dependency, version string) (*family, error) {
	url := req.Repository
	if name, ok := strings.CutPrefix(url, "alias:"); ok {
		url = "@" + name
	}
	remote, err := s.in.Repo.Remote(rutter.Repo{URL: url, Chart: req.Name, Revision: version, Project: s.in.Project})
	if err != nil {
		return nil, fmt.Errorf("fetch version %s: %w", version, err)
	}
	l, err := s.r.load(remote, ".")
	if err != nil {
		return nil, err
	}
	_, host, _ := strings.Cut(display(url), "://")
	return &family{loaded: l, at: path.Join(host, req.Name+"-"+l.chart.Metadata.Version)}, nil
}

// failed says which dependency of which chart it was, and where it is declared.
func (s resolver) failed(f *family, req *chart.Dependency, err error) error {
	file, line := declared(f.chart, req)
	return &rutter.Error{Code: codeOf(err), File: path.Join(f.at, file), Line: line, Err: err,
		Message: fmt.Sprintf("chart %s: dependency %s %s (%s)", f.chart.Name(), req.Name, req.Version, display(req.Repository))}
}

// display is a URL without what may be a password.
func display(url string) string {
	url, _, _ = strings.Cut(url, "?")
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		return url
	}
	host, tail, _ := strings.Cut(rest, "/")
	if i := strings.LastIndex(host, "@"); i >= 0 {
		host = host[i+1:]
	}
	return strings.TrimSuffix(scheme+"://"+host+"/"+tail, "/")
}
