package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/dialect/argo"
)

const secretType = "argocd.argoproj.io/secret-type"

func (r *root) clusterCommand() *cobra.Command {
	c := &cobra.Command{Use: "cluster", Aliases: []string{"clusters"}, Short: "Members of the fleet, and clusters on this machine"}
	var dir string
	c.PersistentFlags().StringVar(&dir, "clusters-dir", home("clusters"), "folder of the clusters on this machine")
	c.AddCommand(r.clusterAdd(), r.clusterList(&dir), r.clusterGet(), r.clusterRemove(), r.clusterExport(), r.clusterLeftovers(),
		r.clusterCreate(&dir), r.clusterDelete(&dir), r.clusterKubeconfig(&dir))
	return c
}

// clusterSecrets lists the Secrets that declare members.
func (r *root) clusterSecrets(ctx context.Context, cl client.Client) ([]corev1.Secret, error) {
	var list corev1.SecretList
	if err := cl.List(ctx, &list, client.InNamespace(r.namespace), client.MatchingLabels{secretType: "cluster"}); err != nil {
		return nil, fmt.Errorf("list cluster Secrets: %w", err)
	}
	return list.Items, nil
}

// clusterNames translates servers to names.
func (r *root) clusterNames(ctx context.Context, cl client.Client) (map[string]string, error) {
	secrets, err := r.clusterSecrets(ctx, cl)
	if err != nil {
		return nil, err
	}
	names := map[string]string{"https://kubernetes.default.svc": "in-cluster"}
	for i := range secrets {
		info, _, err := argo.ParseCluster(&secrets[i], func(string) bool { return true })
		if err == nil || info.Server != "" {
			names[info.Server] = info.Name
		}
	}
	return names, nil
}

// clusterRow is a member, or a cluster on this machine, without any credential.
type clusterRow struct {
	Name    string            `json:"name"`
	Server  string            `json:"server"`
	Source  string            `json:"source"` // member, local, or both
	Project string            `json:"project,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	State   string            `json:"state,omitempty"`
	Problem string            `json:"problem,omitempty"`
}

func rowOfSecret(s *corev1.Secret) clusterRow {
	info, _, err := argo.ParseCluster(s, func(string) bool { return true })
	row := clusterRow{Name: info.Name, Server: info.Server, Source: "member", Project: info.Project, Labels: info.Labels}
	if err != nil {
		row.Problem = err.Error()
	}
	return row
}

func (r *root) clusterList(dir *string) *cobra.Command {
	return r.outputFlag(&cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List members of the fleet and clusters on this machine", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			rows, err := r.allClusters(c.Context(), *dir)
			if err != nil {
				return err
			}
			t := table{header: []string{"NAME", "SERVER", "SOURCE", "STATE", "PROJECT", "LABELS"}, wide: 2}
			for _, row := range rows {
				t.rows = append(t.rows, []string{row.Name, row.Server, row.Source, orDash(row.State + row.Problem), orDash(row.Project), labels(row.Labels)})
			}
			return r.print(struct {
				Clusters []clusterRow `json:"clusters"`
			}{rows}, t)
		},
	})
}

// allClusters lists the members, if a control plane is reached, and the local
// clusters; a missing control plane is an error only if there is nothing else.
func (r *root) allClusters(ctx context.Context, dir string) ([]clusterRow, error) {
	local, err := r.deps.Clusters.List(dir)
	if err != nil {
		return nil, err
	}
	rows := []clusterRow{}
	cl, err := r.client()
	if err == nil {
		var secrets []corev1.Secret
		if secrets, err = r.clusterSecrets(ctx, cl); err == nil {
			for i := range secrets {
				rows = append(rows, rowOfSecret(&secrets[i]))
			}
		}
	}
	if err != nil && len(local) == 0 {
		return nil, err
	}
	for _, l := range local {
		state := "stopped"
		if l.Running {
			state = "running"
		}
		known := false
		for i := range rows {
			if rows[i].Server == l.Server {
				rows[i].Source, rows[i].State, known = "member, local", state, true
			}
		}
		if !known {
			rows = append(rows, clusterRow{Name: l.Name, Server: l.Server, Source: "local", State: state})
		}
	}
	return rows, nil
}

func labels(m map[string]string) string {
	var parts []string
	for k, v := range m {
		if k != secretType {
			parts = append(parts, k+"="+v)
		}
	}
	return orDash(strings.Join(sorted(parts), ","))
}

func (r *root) clusterGet() *cobra.Command {
	return r.outputFlag(&cobra.Command{
		Use: "get NAME", Short: "Show one member of the fleet", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := r.client()
			if err != nil {
				return err
			}
			secret, err := r.findCluster(c.Context(), cl, args[0])
			if err != nil {
				return err
			}
			row := rowOfSecret(secret)
			return r.print(row, table{header: []string{"NAME", "SERVER", "PROJECT", "LABELS", "PROBLEM"},
				rows: [][]string{{row.Name, row.Server, orDash(row.Project), labels(row.Labels), orDash(row.Problem)}}})
		},
	})
}

func (r *root) findCluster(ctx context.Context, cl client.Client, name string) (*corev1.Secret, error) {
	secrets, err := r.clusterSecrets(ctx, cl)
	if err != nil {
		return nil, err
	}
	for i := range secrets {
		if row := rowOfSecret(&secrets[i]); row.Name == name || row.Server == strings.TrimSuffix(name, "/") {
			return &secrets[i], nil
		}
	}
	return nil, rutter.Errorf(rutter.CodeNotFound, "cluster %q is not a member: 'rutter cluster list' shows which are", name)
}

func (r *root) clusterRemove() *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Aliases: []string{"rm"}, Short: "Take a member out of the fleet; its workloads stay", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := r.client()
			if err != nil {
				return err
			}
			secret, err := r.findCluster(c.Context(), cl, args[0])
			if err != nil {
				return err
			}
			if err := cl.Delete(c.Context(), secret); err != nil {
				return fmt.Errorf("delete the Secret of cluster %q: %w", args[0], err)
			}
			fmt.Fprintf(r.out, "cluster %s removed\n", args[0])
			return nil
		},
	}
}

func (r *root) clusterAdd() *cobra.Command {
	var kubeconfig, kubeContext, project string
	var labelled []string
	c := &cobra.Command{
		Use: "add NAME", Short: "Make a cluster a member of the fleet", Args: cobra.ExactArgs(1),
		Long: "Writes a cluster Secret with the server, CA and credential of a kubeconfig.\n" +
			"deploy/member holds a ServiceAccount with the rights that Rutter needs; use its kubeconfig rather than an administrator's.",
		RunE: func(c *cobra.Command, args []string) error {
			rules := clientcmd.NewDefaultClientConfigLoadingRules()
			rules.ExplicitPath = kubeconfig
			rc, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: kubeContext}).ClientConfig()
			if err != nil {
				return fmt.Errorf("read the cluster's kubeconfig: %w", err)
			}
			secret, err := ClusterSecret(r.namespace, args[0], rc)
			if err != nil {
				return err
			}
			for _, l := range labelled {
				k, v, ok := strings.Cut(l, "=")
				if !ok {
					return rutter.Errorf(rutter.CodeInvalid, "--label %q: write KEY=VALUE", l)
				}
				secret.Labels[k] = v
			}
			if project != "" {
				secret.StringData["project"] = project
			}
			cl, err := r.client()
			if err != nil {
				return err
			}
			if err := cl.Create(c.Context(), secret, fieldOwner); apierrors.IsAlreadyExists(err) {
				return rutter.Errorf(rutter.CodeConflict, "cluster %q is a member already: 'rutter cluster remove %s' first", args[0], args[0])
			} else if err != nil {
				return fmt.Errorf("create the Secret of cluster %q: %w", args[0], err)
			}
			fmt.Fprintf(r.out, "cluster %s added: %s\n", args[0], rc.Host)
			return nil
		},
	}
	c.Flags().StringVar(&kubeconfig, "cluster-kubeconfig", "", "kubeconfig of the cluster to add")
	c.Flags().StringVar(&kubeContext, "cluster-context", "", "context of that kubeconfig")
	c.Flags().StringVar(&project, "project", "", "project that alone may use the cluster")
	c.Flags().StringArrayVar(&labelled, "label", nil, "KEY=VALUE for cluster generators, repeatable")
	_ = c.MarkFlagRequired("cluster-kubeconfig") // the flag exists
	return c
}

// ClusterSecret is the Secret that declares a member (reference 1.12).
func ClusterSecret(namespace, name string, rc *rest.Config) (*corev1.Secret, error) {
	if rc.ExecProvider != nil || rc.AuthProvider != nil {
		return nil, rutter.Errorf(rutter.CodeUnsupported, "the kubeconfig logs in with a plugin: use one with a token or a client certificate")
	}
	tls := map[string]any{"insecure": rc.Insecure}
	for key, d := range map[string]struct {
		data []byte
		file string
	}{"caData": {rc.CAData, rc.CAFile}, "certData": {rc.CertData, rc.CertFile}, "keyData": {rc.KeyData, rc.KeyFile}} {
		if len(d.data) == 0 && d.file != "" {
			var err error
			if d.data, err = os.ReadFile(d.file); err != nil {
				return nil, fmt.Errorf("read %s: %w", key, err)
			}
		}
		if len(d.data) > 0 {
			tls[key] = d.data
		}
	}
	if rc.ServerName != "" {
		tls["serverName"] = rc.ServerName
	}
	config := map[string]any{"tlsClientConfig": tls}
	for key, v := range map[string]string{"bearerToken": rc.BearerToken, "username": rc.Username, "password": rc.Password} {
		if v != "" {
			config[key] = v
		}
	}
	data, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encode the credential: %w", err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cluster-" + name, Labels: map[string]string{secretType: "cluster"}},
		StringData: map[string]string{"name": name, "server": rc.Host, "config": string(data)},
	}, nil
}
