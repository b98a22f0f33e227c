package cli

import "github.com/spf13/cobra"

// SetOptions are what the operator decides for all ApplicationSets, as it is
// written; what is empty is looked up in the ConfigMap argocd-cmd-params-cm.
type SetOptions struct {
	Policy               string
	PolicyOverride       string
	DeletionBudget       string
	PreservedAnnotations string
	PreservedLabels      string
	DryRun               string
	Concurrency          string
	NewFileGlobbing      string
	RequeueAfter         string
	ReferenceCollisions  string
	ReferenceTypes       string

	AllowedSCMProviders string
	EnableSCMProviders  string
	StrictTokenRef      string
	SCMRootCA           string
}

// setFlags are the flags about ApplicationSets, named as the reference's where
// it has them. All are texts, so that one that is not given can be told from one
// that says what the default is.
func setFlags(c *cobra.Command, o *SetOptions) {
	f := c.Flags()
	text := func(into *string, name, usage string) { f.StringVar(into, name, "", usage) }
	yes := func(into *string, name, usage string) {
		f.StringVar(into, name, "", usage)
		f.Lookup(name).NoOptDefVal = "true"
		f.Lookup(name).DefValue = ""
	}
	text(&o.Policy, "policy", "what ApplicationSets may do: sync, create-only, create-update or create-delete")
	yes(&o.PolicyOverride, "enable-policy-override", "let a set's applicationsSync win over --policy (default: true without --policy)")
	text(&o.DeletionBudget, "deletion-budget", "how many Applications of a set may be deleted without an approval, such as \"10% min 5\" or \"10% per 24h\" (default \"25% min 3\", per hour)")
	text(&o.PreservedAnnotations, "preserved-annotations", "annotations of Applications that survive, separated by commas")
	text(&o.PreservedLabels, "preserved-labels", "labels of Applications that survive, separated by commas")
	yes(&o.DryRun, "applicationset-dry-run", "write nothing for ApplicationSets but their status")
	text(&o.Concurrency, "applicationset-concurrency", "ApplicationSets evaluated at one time (default 4)")
	yes(&o.NewFileGlobbing, "enable-new-git-file-globbing", "in files of git generators, * stays within a path segment and ** crosses them")
	text(&o.RequeueAfter, "applicationset-requeue-after", "pause between polls of git and clusterDecisionResource generators (default 3m)")
	yes(&o.ReferenceCollisions, "applicationset-reference-collisions", "let a matrix overwrite parameters of one name by the rules of Argo CD")
	yes(&o.ReferenceTypes, "applicationset-reference-types", "render every expression as a text, as Argo CD does")
	text(&o.AllowedSCMProviders, "allowed-scm-providers", "APIs that scmProvider and pullRequest generators may ask, separated by commas; all when empty")
	yes(&o.EnableSCMProviders, "enable-scm-providers", "let scmProvider and pullRequest generators ask (default true)")
	yes(&o.StrictTokenRef, "enable-tokenref-strict-mode", "give generators only Secrets with the label argocd.argoproj.io/secret-type: scm-creds")
	text(&o.SCMRootCA, "scm-root-ca-path", "file with authorities (PEM) that are trusted beside the system's for hosting services")
}
