package gitserver

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/rutterhq/rutter"
)

// Init makes a bare repository with the default branch main; one that is
// already there is left as it is.
func Init(ctx context.Context, dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil { //nolint:gosec // the repositories are for everybody on this machine, as the server is
		return rutter.Errorf(rutter.CodeUnavailable, "making the repository %s: %w", dir, err)
	}
	_, err := git(ctx, nil, "init", "--quiet", "--bare", "--template=", "--initial-branch=main", "--end-of-options", dir)
	return err
}

// ImportDir commits the content of srcDir as the whole content of a branch of
// a bare repository, on top of what the branch holds. Where that is the same
// already, nothing is committed.
func ImportDir(ctx context.Context, bare, srcDir, branch, message string) error {
	src, err := filepath.Abs(srcDir)
	if err != nil {
		return rutter.Errorf(rutter.CodeInvalid, "importing %s: %w", srcDir, err)
	}
	if info, err := os.Stat(src); err != nil || !info.IsDir() {
		return rutter.Errorf(rutter.CodeNotFound, "importing %s: it is not a folder", srcDir)
	}
	ref := "refs/heads/" + branch
	if _, err := git(ctx, nil, "check-ref-format", ref); err != nil || strings.HasPrefix(branch, "-") {
		return rutter.Errorf(rutter.CodeInvalid, "importing %s: %q is not a branch name", srcDir, branch)
	}
	tmp, err := os.MkdirTemp("", "rutter-import-")
	if err != nil {
		return rutter.Errorf(rutter.CodeUnavailable, "importing %s: %w", srcDir, err)
	}
	defer os.RemoveAll(tmp)
	env := []string{"GIT_DIR=" + bare, "GIT_WORK_TREE=" + src, "GIT_INDEX_FILE=" + filepath.Join(tmp, "index"),
		"GIT_AUTHOR_NAME=Rutter", "GIT_AUTHOR_EMAIL=rutter@localhost", "GIT_COMMITTER_NAME=Rutter", "GIT_COMMITTER_EMAIL=rutter@localhost"}
	if _, err := git(ctx, env, "add", "--all", "--force", "--", src); err != nil {
		return err
	}
	tree, err := git(ctx, env, "write-tree")
	if err != nil {
		return err
	}
	return commitTree(ctx, env, ref, tree, message)
}

// commitTree moves a branch on to a tree; a branch that somebody else has
// moved meanwhile is an error.
func commitTree(ctx context.Context, env []string, ref, tree, message string) error {
	args := []string{"commit-tree", tree, "-m", message}
	parent, err := git(ctx, env, "rev-parse", "--quiet", "--verify", ref)
	if err == nil {
		if had, err := git(ctx, env, "rev-parse", parent+"^{tree}"); err == nil && had == tree {
			return nil
		}
		args = append(args, "-p", parent)
	} else {
		parent = strings.Repeat("0", 40)
	}
	commit, err := git(ctx, env, args...)
	if err != nil {
		return err
	}
	_, err = git(ctx, env, "update-ref", ref, commit, parent)
	return err
}

// refsOf is a fingerprint of a repository's refs.
func refsOf(ctx context.Context, dir string) string {
	out, err := git(ctx, []string{"GIT_DIR=" + dir}, "for-each-ref")
	if err != nil {
		return ""
	}
	return out
}

// git runs git without this machine's configuration and returns its output
// without the line's end.
func git(ctx context.Context, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...) //nolint:gosec // the arguments are this package's and its caller's own
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null"}, env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", rutter.Errorf(rutter.CodeUnavailable, "git %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimRight(string(out), "\n"), nil
}
