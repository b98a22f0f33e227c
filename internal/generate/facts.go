package generate

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rutterhq/rutter"
)

// Facts is what the generators may ask. An answer is taken as data: the same
// question must give the same answer for as long as one evaluation lasts. An
// answer is complete or an error; what could not be looked at is an error.
//
// Facts that also know hosting services, placements or plugins implement
// ForgeFacts, DecisionFacts or PluginFacts; a set that asks what the facts do
// not know is told so, and nothing that it made before is removed.
type Facts interface {
	// Clusters are the members, including the control plane's own cluster. Where
	// no Secret describes that one, it has the server InClusterServer and
	// neither labels nor annotations.
	Clusters() ([]rutter.ClusterInfo, error)
	// Snapshot is the tree of a repository at a revision.
	Snapshot(repo rutter.Repo) (rutter.Snapshot, error)
}

// InClusterServer is the API server of the control plane's own cluster.
const InClusterServer = "https://kubernetes.default.svc"

// ForgeFacts answer the scmProvider and pullRequest generators. References to
// Secrets and ConfigMaps in a query carry the namespace of the set.
type ForgeFacts interface {
	Repositories(q rutter.ForgeQuery) ([]rutter.ForgeRepo, error)
	PullRequests(q rutter.ForgeQuery) ([]rutter.ForgePullRequest, error)
	// PathExists reports whether a file or folder is in a branch.
	PathExists(q rutter.ForgeQuery, repo rutter.ForgeRepo, path string) (bool, error)
}

// DecisionFacts answer the clusterDecisionResource generator.
type DecisionFacts interface {
	// ConfigMap is the data of a ConfigMap in the control plane's namespace.
	ConfigMap(name string) (map[string]string, error)
	// Resources are whole objects of the control plane's namespace. One that is
	// asked for by name and is not there is CodeNotFound.
	Resources(q ResourceQuery) ([]map[string]any, error)
}

// ResourceQuery asks for objects of a kind by its plural name.
type ResourceQuery struct {
	APIVersion string `json:"apiVersion"`
	// Resource is the plural name, such as placementdecisions.
	Resource string `json:"resource"`
	// Name is that of one object; with an empty one the selector decides.
	Name     string               `json:"name"`
	Selector metav1.LabelSelector `json:"selector"`
}

// PluginFacts answer the plugin generator.
type PluginFacts interface {
	// PluginParameters are the items of output.parameters of the service's reply.
	PluginParameters(q PluginQuery) ([]map[string]any, error)
}

// PluginQuery asks a service for parameters.
type PluginQuery struct {
	// ConfigMap, in the control plane's namespace, says where the service is.
	ConfigMap string `json:"configMap"`
	// Namespace and Set are those of the set; Set is sent to the service.
	Namespace string `json:"namespace"`
	Set       string `json:"set"`
	// Input is sent as input.parameters.
	Input map[string]any `json:"input"`
}

// unknowable is the answer where the facts do not know a kind of question.
func unknowable(n node, of string) outcome {
	return failure(rutter.CodeUnsupported, "%s: %s cannot be asked here; nothing that it made before is removed", n.producer(), of)
}
