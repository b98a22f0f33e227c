package gitserver

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/rutterhq/rutter"
)

// Init makes an empty bare repository whose branch is main.
func Init(ctx context.Context, dir string) error {
	_, err := run(ctx, "", "init", "--bare", "--quiet", "--initial-branch=main", dir)
	return err
}

// ImportDir commits the content of a folder to a branch of a bare repository,
// on top of what the branch holds.
func ImportDir(ctx context.Context, bare, src, branch, message string) error {
	index, err := os.MkdirTemp("", "rutter-index-")
	if err != nil {
		return fmt.Errorf("make a folder for the index: %w", err)
	}
	defer os.RemoveAll(index)
	env := []string{"GIT_DIR=" + bare, "GIT_WORK_TREE=" + src, "GIT_INDEX_FILE=" + index + "/index"}
	if _, err := runIn(ctx, src, env, "add", "--all", "--force", "."); err != nil {
		return err
	}
	tree, err := runIn(ctx, src, env, "write-tree")
	if err != nil {
		return err
	}
	args := []string{"commit-tree", "-m", message}
	if parent, err := runIn(ctx, src, env, "rev-parse", "--quiet", "--verify", "refs/heads/"+branch); err == nil {
		args = append(args, "-p", parent)
	}
	commit, err := runIn(ctx, src, env, append(args, tree)...)
	if err != nil {
		return err
	}
	_, err = runIn(ctx, src, env, "update-ref", "refs/heads/"+branch, commit)
	return err
}

func run(ctx context.Context, dir string, args ...string) (string, error) {
	return runIn(ctx, dir, nil, args...)
}

func runIn(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...) //nolint:gosec // arguments are ours
	cmd.Dir = dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=Rutter", "GIT_AUTHOR_EMAIL=rutter@localhost", "GIT_COMMITTER_NAME=Rutter", "GIT_COMMITTER_EMAIL=rutter@localhost"}, env...)
	out, err := cmd.Output()
	if err != nil {
		var words string
		if e, ok := err.(*exec.ExitError); ok { //nolint:errorlint // Output returns it as it is
			words = strings.Join(strings.Fields(string(e.Stderr)), " ")
		}
		return "", rutter.Errorf(rutter.CodeInternal, "git %s: %w (%s)", args[0], err, words)
	}
	return strings.TrimSpace(string(out)), nil
}
