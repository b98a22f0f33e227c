package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/dialect/argo"
)

func (r *root) repoCommand() *cobra.Command {
	c := &cobra.Command{Use: "repo", Aliases: []string{"repos", "repository"}, Short: "Repositories and their credentials"}
	c.AddCommand(r.repoAdd(), r.repoList(), r.repoRemove())
	return c
}

type repoFlags struct {
	name, username, project, keyFile string
	passwordStdin, template          bool
	insecure, insecureHostKey        bool
}

func (r *root) repoAdd() *cobra.Command {
	f := &repoFlags{}
	c := &cobra.Command{
		Use: "add URL", Short: "Declare a repository and how to log in", Args: cobra.ExactArgs(1),
		Example: "  printf %s \"$TOKEN\" | rutter repo add https://github.com/org/fleet --username git --password-stdin\n" +
			"  rutter repo add git@github.com:org/fleet --ssh-private-key-path ~/.ssh/deploy",
		RunE: func(c *cobra.Command, args []string) error {
			secret, err := r.repoSecret(args[0], f)
			if err != nil {
				return err
			}
			if _, err := argo.ParseRepository(secret); err != nil {
				return err
			}
			cl, err := r.client()
			if err != nil {
				return err
			}
			if err := cl.Create(c.Context(), secret, fieldOwner); apierrors.IsAlreadyExists(err) {
				return rutter.Errorf(rutter.CodeConflict, "repository %q is declared already: 'rutter repo remove %s' first", args[0], args[0])
			} else if err != nil {
				return fmt.Errorf("create the Secret of repository %q: %w", args[0], err)
			}
			fmt.Fprintf(r.out, "repository %s added\n", args[0])
			return nil
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.name, "name", "", "display name")
	fl.StringVar(&f.username, "username", "", "user name")
	fl.BoolVar(&f.passwordStdin, "password-stdin", false, "read the password or token from standard input; it is never an argument")
	fl.StringVar(&f.keyFile, "ssh-private-key-path", "", "file with an SSH private key")
	fl.StringVar(&f.project, "project", "", "project that alone may use it")
	fl.BoolVar(&f.template, "creds", false, "the URL is a prefix: use the login for every repository below it (repo-creds)")
	fl.BoolVar(&f.insecure, "insecure-skip-server-verification", false, "do not verify the server's certificate")
	fl.BoolVar(&f.insecureHostKey, "insecure-ignore-host-key", false, "do not verify the server's SSH key")
	return c
}

// checkRepoURL refuses what cannot be a repository, and credentials in a URL:
// they would be shown wherever the URL is.
func checkRepoURL(raw string) error {
	if host, path, ok := strings.Cut(raw, ":"); ok && strings.Contains(host, "@") && path != "" && !strings.HasPrefix(path, "//") {
		return nil // user@host:path
	}
	u, err := url.Parse(raw)
	if err != nil || !slices.Contains([]string{"http", "https", "ssh", "file"}, u.Scheme) {
		return rutter.Errorf(rutter.CodeInvalid, "not a URL of a Git repository: use https://, http://, ssh://, file:// or user@host:path")
	}
	if _, has := u.User.Password(); has || u.User != nil && u.Scheme != "ssh" {
		return rutter.Errorf(rutter.CodeInvalid, "credentials in a URL are shown wherever the URL is: use --username and --password-stdin")
	}
	return nil
}

func (r *root) repoRemove() *cobra.Command {
	return &cobra.Command{
		Use: "remove URL", Aliases: []string{"rm"}, Short: "Forget a repository and its credentials", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := r.client()
			if err != nil {
				return err
			}
			var list corev1.SecretList
			if err := cl.List(c.Context(), &list, client.InNamespace(r.namespace), client.HasLabels{secretType}); err != nil {
				return fmt.Errorf("list repository Secrets: %w", err)
			}
			n := 0
			for i := range list.Items {
				s := &list.Items[i]
				if kind := s.Labels[secretType]; kind != "repository" && kind != "repo-creds" || string(s.Data["url"]) != args[0] {
					continue
				}
				if err := cl.Delete(c.Context(), s); err != nil {
					return fmt.Errorf("delete the Secret %s: %w", s.Name, err)
				}
				n++
			}
			if n == 0 {
				return rutter.Errorf(rutter.CodeNotFound, "repository %q is not declared: 'rutter repo list' shows which are", args[0])
			}
			fmt.Fprintf(r.out, "repository %s removed\n", args[0])
			return nil
		},
	}
}

func (r *root) repoSecret(url string, f *repoFlags) (*corev1.Secret, error) {
	if err := checkRepoURL(url); err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(url + "|" + f.project))
	kind, prefix := "repository", "repo-"
	if f.template {
		kind, prefix = "repo-creds", "creds-"
	}
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: prefix + hex.EncodeToString(sum[:6]), Labels: map[string]string{secretType: kind}},
		StringData: map[string]string{"url": url, "type": "git"},
	}
	for k, v := range map[string]string{"name": f.name, "username": f.username, "project": f.project} {
		if v != "" {
			s.StringData[k] = v
		}
	}
	if f.insecure {
		s.StringData["insecure"] = "true"
	}
	if f.insecureHostKey {
		s.StringData["insecureIgnoreHostKey"] = "true"
	}
	if f.passwordStdin {
		data, err := r.readFile("-")
		if err != nil {
			return nil, err
		}
		if s.StringData["password"] = strings.TrimRight(string(data), "\r\n"); s.StringData["password"] == "" {
			return nil, rutter.Errorf(rutter.CodeInvalid, "--password-stdin: standard input is empty")
		}
	}
	if f.keyFile != "" {
		key, err := os.ReadFile(f.keyFile)
		if err != nil {
			return nil, fmt.Errorf("read the private key: %w", err)
		}
		if _, err := ssh.ParsePrivateKey(key); err != nil {
			return nil, rutter.Errorf(rutter.CodeInvalid, "%s holds no SSH private key without a passphrase", f.keyFile)
		}
		s.StringData["sshPrivateKey"] = string(key)
	}
	return s, nil
}

// repoRow is a repository without any credential.
type repoRow struct {
	URL     string `json:"url"`
	Name    string `json:"name,omitempty"`
	Type    string `json:"type"`
	Project string `json:"project,omitempty"`
	Kind    string `json:"kind"`
	Login   string `json:"login"`
	Problem string `json:"problem,omitempty"`
}

func (r *root) repoList() *cobra.Command {
	return r.outputFlag(&cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List repositories, without their credentials", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := r.client()
			if err != nil {
				return err
			}
			var list corev1.SecretList
			if err := cl.List(c.Context(), &list, client.InNamespace(r.namespace), client.HasLabels{secretType}); err != nil {
				return fmt.Errorf("list repository Secrets: %w", err)
			}
			rows := []repoRow{}
			t := table{header: []string{"URL", "TYPE", "KIND", "LOGIN", "PROJECT", "PROBLEM"}, wide: 1}
			for i := range list.Items {
				kind := list.Items[i].Labels[secretType]
				if kind != "repository" && kind != "repo-creds" {
					continue
				}
				row := rowOfRepo(&list.Items[i], kind)
				rows = append(rows, row)
				t.rows = append(t.rows, []string{row.URL, row.Type, row.Kind, row.Login, orDash(row.Project), orDash(row.Problem)})
			}
			return r.print(struct {
				Repositories []repoRow `json:"repositories"`
			}{rows}, t)
		},
	})
}

func rowOfRepo(s *corev1.Secret, kind string) repoRow {
	cred, err := argo.ParseRepository(s)
	row := repoRow{URL: cred.URL, Name: cred.Name, Type: cred.Type, Project: cred.Project, Kind: kind, Login: login(cred)}
	if err != nil {
		row.Problem = err.Error()
	}
	return row
}

func login(c rutter.RepoCredential) string {
	switch {
	case c.SSHPrivateKey != "":
		return "ssh key"
	case c.BearerToken != "":
		return "token"
	case c.Password != "" || c.Username != "":
		return "basic"
	case c.TLSClientCert != "":
		return "client certificate"
	}
	return "none"
}
