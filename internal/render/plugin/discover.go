package plugin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/record"
)

// Match finds the plugin for a source. A plugin that is named must be made for
// the folder, too, if it says for which folders it is made. Without options
// (detection of the tool) nothing may match, which is no error; where the
// source asks for a plugin it is.
//
// Match must be asked anew for each commit. Looking for files is cheap, and
// recorded in in.Repo. A command that discovers is given no variables of the
// application, and so runs once for each commit and folder; what it
// was given to see is not recorded when in.Links is the snapshot itself: else
// each commit would render every application again that a plugin could have
// been made for.
func (r *Renderer) Match(ctx context.Context, in Input) (Definition, bool, error) {
	name := ""
	if in.Options != nil {
		name = in.Options.Name
	}
	candidates := r.named(name)
	if name != "" && len(candidates) == 0 {
		return Definition{}, false, rutter.Errorf(rutter.CodeInvalid, "plugin.name: there is no plugin %q: %s", name, r.installed())
	}
	for _, d := range candidates {
		if !d.Discover.set() {
			if name != "" {
				return d, true, nil
			}
			continue
		}
		ok, err := r.discovers(ctx, d, in)
		if err != nil {
			return Definition{}, false, fmt.Errorf("plugin %s: discover: %w", d.FullName(), err)
		}
		if ok {
			return d, true, nil
		}
	}
	switch {
	case in.Options == nil:
		return Definition{}, false, nil
	case name == "":
		return Definition{}, false, rutter.Errorf(rutter.CodeInvalid, "plugin: no plugin discovers itself in %s: name one in plugin.name; %s", in.Path, r.installed())
	}
	return Definition{}, false, rutter.Errorf(rutter.CodeInvalid, "plugin.name: the plugin %s is not made for %s: %s", name, in.Path, wanted(candidates[0]))
}

// named returns the plugins that a name may mean: all, for none.
func (r *Renderer) named(name string) []Definition {
	if name == "" {
		return r.opts.Definitions
	}
	var exact, rest []Definition
	for _, d := range r.opts.Definitions {
		switch name {
		case d.FullName():
			exact = append(exact, d)
		case d.Name:
			rest = append(rest, d)
		}
	}
	return append(exact, rest...)
}

func (r *Renderer) installed() string {
	names := make([]string, 0, len(r.opts.Definitions))
	for _, d := range r.opts.Definitions {
		names = append(names, d.FullName())
	}
	if len(names) == 0 {
		return "the operator has installed none (rutter run --plugins)"
	}
	return "the operator has installed " + strings.Join(names, ", ")
}

// wanted says what a plugin looks for.
func wanted(d Definition) string {
	switch {
	case d.Discover.FileName != "":
		return fmt.Sprintf("no file there matches its discover.fileName %q", d.Discover.FileName)
	case d.Discover.Glob != "":
		return fmt.Sprintf("no file there matches its discover.find.glob %q", d.Discover.Glob)
	}
	return "its discover.find.command finds nothing there"
}

// discovers says whether a plugin is made for a folder.
func (r *Renderer) discovers(ctx context.Context, d Definition, in Input) (bool, error) {
	switch view := (folder{in.Repo, in.Path}); {
	case d.Discover.FileName != "":
		found, err := fs.Glob(view, path.Clean(d.Discover.FileName))
		if err == nil {
			err = in.Repo.Err()
		}
		return len(found) > 0, err
	case d.Discover.Glob != "":
		found := false
		err := doublestar.GlobWalk(view, path.Clean(strings.TrimPrefix(d.Discover.Glob, "/")), func(string, fs.DirEntry) error {
			found = true
			return fs.SkipAll
		})
		if errors.Is(err, fs.SkipAll) {
			err = nil
		}
		if err == nil {
			err = in.Repo.Err()
		}
		return found, err
	}
	return r.discoversByCommand(ctx, d, in)
}

// maxDiscovered bounds what is remembered of commands.
const maxDiscovered = 10_000

// discoversByCommand asks a program, which must succeed and print something.
func (r *Renderer) discoversByCommand(ctx context.Context, d Definition, in Input) (bool, error) {
	in = aside(ctx, in)
	revision := in.Repo.Revision()
	key := digest([]byte(strings.Join([]string{r.Fingerprint(d), revision, in.Path}, "\x00")))
	// A folder that is not committed has no revision to remember it by.
	keep := strings.Trim(revision, "0") != ""
	if answer, ok := r.discovered(key); keep && ok {
		return answer, nil
	}
	run, err := r.begin(d, in, nil)
	if err != nil {
		return false, err
	}
	defer run.close()
	res, err := run.command(ctx, d.Discover.Command)
	if err != nil {
		return false, err
	}
	answer := res.ExitCode == 0 && len(strings.TrimSpace(string(res.Stdout))) > 0
	if keep {
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.answers) >= maxDiscovered {
			clear(r.answers)
		}
		r.answers[key] = answer
	}
	return answer, nil
}

// asideLimits bound what one question may read.
var asideLimits = record.Limits{Reads: 100_000, Bytes: 512 << 20}

// aside returns the same input with notes of its own.
func aside(ctx context.Context, in Input) Input {
	if snap, ok := in.Links.(rutter.Snapshot); ok {
		in.Repo = record.New(ctx, snap, record.Options{Limits: asideLimits})
	}
	return in
}

func (r *Renderer) discovered(key string) (answer, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	answer, ok = r.answers[key]
	return answer, ok
}

// folder shows the application's folder to the pattern libraries.
type folder struct {
	repo *record.FS
	dir  string
}

// ReadDir implements fs.ReadDirFS.
func (f folder) ReadDir(name string) ([]fs.DirEntry, error) {
	return f.repo.ReadDir(path.Join(f.dir, name))
}

// Stat implements fs.StatFS.
func (f folder) Stat(name string) (fs.FileInfo, error) { return f.repo.Stat(path.Join(f.dir, name)) }

// Open implements fs.FS. Patterns are matched by names, so nothing is ever opened.
func (f folder) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
}
