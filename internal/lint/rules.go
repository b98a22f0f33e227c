package lint

// rule is one kind of mistake. A rule looks at each document by itself, or at
// the whole repository.
type rule struct {
	id       string
	severity Severity
	// doc says what is found, remedy what to do.
	doc, remedy string

	document   func(*run, *document)
	repository func(*run)
}

// configRule is what mistakes in the settings are reported as.
var configRule = rule{
	id: "config", severity: Error, doc: ConfigName + " cannot be used",
	remedy: "write disable: [{rule, paths, reason}] and exclude: [globs]; 'rutter lint --help' lists the rules",
}

// rules returns all rules, those about the text of files first. It is a
// function because some rules look at the list of rules.
func rules() []rule {
	return []rule{
		configRule,
		{
			id: ignoreRule, severity: Warning, doc: "a rutter:ignore comment that names no rule or gives no reason",
			remedy: "write # rutter:ignore RULE reason", repository: checkIgnoreComments,
		},
		{
			id: "invalid-yaml", severity: Error, doc: "a file that is no YAML",
			remedy: "correct the file; nothing in it is deployed or checked", repository: checkYAML,
		},
		{
			id: "repeated-key", severity: Error, doc: "a key that a mapping has twice: the first value is lost",
			remedy: "keep one of them, with what both should say", document: checkRepeatedKeys,
		},
		{
			id: "unknown-field", severity: Error, doc: "a field that Application, ApplicationSet or AppProject don't have, or a value of the wrong type: it is refused or ignored",
			remedy: "correct the name or the value; field names are case-sensitive", document: checkFields,
		},
		{
			id: "unknown-annotation", severity: Warning, doc: "an annotation or label of argocd.argoproj.io that has no meaning",
			remedy: "correct the name, or use a prefix of your own", document: checkAnnotationNames,
		},
		{
			id: "annotation-value", severity: Error, doc: "a value that an annotation or label cannot have: a number without quotes, a wave that is no number, an unknown hook",
			remedy: "use one of the values that the message names", document: checkAnnotationValues,
		},
		{
			id: "unknown-sync-option", severity: Warning, doc: "a sync option that does not exist, or has no effect where it stands",
			remedy: "write Key=value as the reference does, without spaces", document: checkSyncOptions,
		},
		{
			id: "plaintext-secret", severity: Error, doc: "a Secret whose values stand in Git unencrypted",
			remedy:   "seal it with SOPS ('sops -e -i'), or keep it in External Secrets or a SealedSecret; and change the value: it stays in the history",
			document: checkSecrets,
		},
		{
			id: "mutable-image-tag", severity: Warning, doc: "an image without a tag, or with one that moves (latest, main, stable, ...), in containers, kustomize images and Helm values",
			remedy: "use a version that is never pushed again, or a digest (image@sha256:...)", repository: checkImages,
		},
		{
			id: "mutable-revision", severity: Info, doc: "production follows a branch, HEAD or a range of chart versions",
			remedy: "let production follow a tag or a commit, and move that to promote", document: checkRevisions,
		},
		{
			id: "prune-without-preserve", severity: Warning, doc: "prune on a generator that can shrink (every cluster, every folder): a folder or label that goes takes its workloads along",
			remedy:   "set spec.syncPolicy.preserveResourcesOnDeletion: true or applicationsSync: create-update, or narrow the glob or the selector",
			document: checkShrinking,
		},
		{
			id: "all-at-once", severity: Info, doc: "an ApplicationSet that changes all production clusters at the same time",
			remedy: "set spec.strategy.type: RollingSync with a step for a first cluster", document: checkAllAtOnce,
		},
		{
			id: "cluster-admin", severity: Warning, doc: "a project, role or binding that allows everything",
			remedy: "list the repositories, destinations and kinds that the team owns", document: checkClusterAdmin,
		},
		{
			id: "argocd-rbac", severity: Warning, doc: "argocd-rbac-cm gives everybody or a role everything",
			remedy: "give each group a role for its own projects; policy.default: role:readonly or nothing", document: checkArgoRBAC,
		},
		{
			id: "default-project", severity: Info, doc: "an Application in the project default, which limits nothing",
			remedy: "make an AppProject for the team and name it in spec.project", document: checkDefaultProject,
		},
		{
			id: "many-waves", severity: Warning, doc: "more than 10 sync waves in what is deployed together, or waves far apart",
			remedy: "keep waves for what must be there first (namespaces, CRDs, operators); let the rest go together", repository: checkWaves,
		},
		{
			id: "no-waves", severity: Info, doc: "Applications of infrastructure and of workloads in one folder, and no sync wave between them",
			remedy: "give what others need argocd.argoproj.io/sync-wave: \"-1\"", repository: checkNoWaves,
		},
		{
			id: "big-app-of-apps", severity: Info, doc: "more than 100 Applications in one folder",
			remedy: "divide them over several folders and parents, or generate them", repository: checkBigFolders,
		},
		{
			id: "many-clusters", severity: Info, doc: "one repository that names more than 10 clusters one by one",
			remedy: "register the clusters with labels and use the clusters generator, or give each team its repository", repository: checkManyClusters,
		},
		{
			id: "no-self-heal", severity: Info, doc: "automated sync without selfHeal: changes made by hand stay",
			remedy: "set spec.syncPolicy.automated.selfHeal: true", document: checkSelfHeal,
		},
		{
			id: "auto-sync-data", severity: Info, doc: "CRDs or a database that are synced without anybody looking",
			remedy: "sync it by hand, or let it follow a tag that is moved after a review", document: checkAutoSyncData,
		},
		{
			id: "unprotected-data", severity: Info, doc: "a volume that pruning may delete",
			remedy: "annotate it with argocd.argoproj.io/sync-options: Prune=false,Delete=false", repository: checkUnprotectedData,
		},
		{
			id: "no-readiness-probe", severity: Info, doc: "a workload of production whose health nobody can see: synced is not healthy",
			remedy: "add a readinessProbe", document: checkProbes,
		},
		{
			id: "no-health-gate", severity: Warning, doc: "a Flux Kustomization that others depend on does not wait for health",
			remedy: "set spec.wait: true or spec.healthChecks", repository: checkHealthGates,
		},
		{
			id: "hpa-replicas", severity: Warning, doc: "replicas in Git of what a HorizontalPodAutoscaler scales: self-heal and the autoscaler fight",
			remedy: "remove spec.replicas, or ignore /spec/replicas in spec.ignoreDifferences", repository: checkAutoscaled,
		},
		{
			id: "two-controllers", severity: Warning, doc: "an Application and a Flux Kustomization deploy the same folder",
			remedy: "let one of the two deploy it", repository: checkTwoControllers,
		},
	}
}
