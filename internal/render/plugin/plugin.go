package plugin

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/buildenv"
	"github.com/rutterhq/rutter/internal/render/manifest"
	"github.com/rutterhq/rutter/internal/render/record"
	"github.com/rutterhq/rutter/internal/sandbox"
)

// Options adjusts a Renderer.
type Options struct {
	// Definitions are the plugins, in the order of Load.
	Definitions []Definition
	Sandbox     *sandbox.Sandbox
	// Limits bound each command; their zero values are the sandbox's defaults.
	sandbox.Limits

	Logger *slog.Logger
	// Now is the clock by which a render is timed; nil means the machine's.
	Now func() time.Time
}

// Renderer runs plugins. It is safe for concurrent use.
type Renderer struct {
	opts Options

	mu sync.Mutex
	// answers are what commands said about folders, by what they were asked.
	answers map[string]bool
}

// New returns a Renderer.
func New(o Options) *Renderer {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the default
	}
	return &Renderer{opts: o, answers: map[string]bool{}}
}

// Input is what a plugin renders.
type Input struct {
	Repo *record.FS
	// Links reads symbolic links of the same snapshot, when it can.
	Links fs.ReadLinkFS
	// Path is the application's folder, clean and relative to the root.
	Path string
	// Options are the source's; nil when it does not speak of plugins.
	Options *rutter.PluginOptions
	Env     *buildenv.Env
	// KubeVersion and APIVersions are the target cluster's.
	KubeVersion string
	APIVersions []string
}

// Fingerprint names all that a plugin's output depends on beside its inputs: the
// definition, and the programs in the operator's folders. It belongs into the
// key of a render.
func (r *Renderer) Fingerprint(d Definition) string {
	parts := []string{d.Digest}
	for _, dir := range r.opts.Sandbox.Tools() {
		entries, err := os.ReadDir(dir)
		if err != nil {
			parts = append(parts, dir, "unreadable")
			continue
		}
		for _, e := range entries {
			if info, err := os.Stat(filepath.Join(dir, e.Name())); err == nil {
				parts = append(parts, dir, e.Name(), fmt.Sprint(info.Size(), info.ModTime().UnixNano(), info.Mode()))
			}
		}
	}
	return digest([]byte(strings.Join(parts, "\x00")))
}

// Render runs a plugin that Match has found, and reads what it prints. Errors:
// CodeInvalid when a command fails or takes too much; CodeUnavailable when it
// cannot be run here.
func (r *Renderer) Render(ctx context.Context, d Definition, in Input) ([]rutter.Object, []string, error) {
	env, warnings, err := environment(d, in)
	if err != nil {
		return nil, nil, err
	}
	start := r.opts.Now()
	run, err := r.begin(d, in, env)
	if err != nil {
		return nil, nil, err
	}
	defer run.close()
	if d.Init.set() {
		if _, err := run.must(ctx, "init", d.Init); err != nil {
			return nil, nil, err
		}
	}
	out, err := run.must(ctx, "generate", d.Generate)
	if err != nil {
		return nil, nil, err
	}
	objs, more, err := parse(d, out)
	if err != nil {
		return nil, nil, err
	}
	r.opts.Logger.Debug("plugin has rendered", "plugin", d.FullName(), "path", in.Path, "objects", len(objs), "ms", r.opts.Now().Sub(start).Milliseconds())
	return objs, slices.Concat(d.Warnings, warnings, run.warnings, more), nil
}

// run is one workspace and what runs in it.
type run struct {
	r        *Renderer
	d        Definition
	in       Input
	env      []string
	space    *sandbox.Workspace
	warnings []string
}

// begin makes a workspace with the files that the plugin gets.
func (r *Renderer) begin(d Definition, in Input, env []string) (*run, error) {
	space, err := r.opts.Sandbox.Workspace()
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w", d.FullName(), err)
	}
	u := &run{r: r, d: d, in: in, env: env, space: space}
	w := writer{repo: in.Repo, links: in.Links, to: space, modes: d.PreserveFileMode}
	if err := w.write(d, in.Path); err != nil {
		u.close()
		if stop := in.Repo.Err(); stop != nil {
			err = stop
		}
		return nil, fmt.Errorf("plugin %s: %w", d.FullName(), err)
	}
	u.warnings = w.warnings
	return u, nil
}

func (u *run) close() {
	if err := u.space.Close(); err != nil {
		u.r.opts.Logger.Warn("a plugin's folder was not removed", "plugin", u.d.FullName(), "error", err)
	}
}

// command runs one command in the application's folder.
func (u *run) command(ctx context.Context, c Command) (sandbox.Result, error) {
	return u.space.Run(ctx, sandbox.Command{
		Args: c.argv(), Dir: u.in.Path, Env: u.env, Network: u.d.Network, Limits: u.r.opts.Limits,
	})
}

// must runs a command that has to succeed.
func (u *run) must(ctx context.Context, step string, c Command) ([]byte, error) {
	res, err := u.command(ctx, c)
	what := fmt.Sprintf("plugin %s: %s (%s)", u.d.FullName(), step, path.Base(c.Command[0]))
	switch {
	case err != nil:
		return nil, rutter.Errorf(rutter.CodeOf(err), "%s: %w%s", what, err, lastLines(res.Stderr))
	case res.Signal != "":
		return nil, rutter.Errorf(rutter.CodeInvalid, "%s: ended by %s%s", what, res.Signal, lastLines(res.Stderr))
	case res.ExitCode != 0:
		return nil, rutter.Errorf(rutter.CodeInvalid, "%s: exit code %d%s", what, res.ExitCode, lastLines(res.Stderr))
	}
	return res.Stdout, nil
}

// How much of a program's messages an error quotes: of a long line the start
// and the end, where the cause is.
const (
	maxLines = 5
	lineHead = 200
	lineTail = 400
)

// lastLines puts the end of the messages into one line.
func lastLines(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			if len(line) > lineHead+lineTail {
				line = strings.ToValidUTF8(line[:lineHead]+" ... "+line[len(line)-lineTail:], "")
			}
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return ": " + strings.Join(lines[max(0, len(lines)-maxLines):], "; ")
}

// parse reads the manifests that a plugin has printed.
func parse(d Definition, out []byte) ([]rutter.Object, []string, error) {
	label := "output of plugin " + d.FullName()
	docs, err := manifest.Documents(out, label)
	if err != nil {
		return nil, nil, err
	}
	var objs []rutter.Object
	var warnings []string
	for _, doc := range docs {
		v, warning, err := manifest.DecodeLenient(doc, label)
		if err != nil {
			return nil, nil, err
		}
		if warning != "" {
			warnings = append(warnings, warning)
		}
		found, err := manifest.Objects(v, rutter.Origin{File: label, Line: doc.Line})
		if err != nil {
			return nil, nil, err
		}
		for _, o := range found {
			o.Origin = rutter.Origin{} // no file of the repository holds it
			objs = append(objs, o)
		}
	}
	return objs, warnings, nil
}
