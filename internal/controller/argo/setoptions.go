package argo

import (
	"context"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
)

// SetOptions are what the operator decided for all ApplicationSets. The zero
// value is the reference's defaults with the default deletion budget.
type SetOptions struct {
	// Policy is the applicationsSync of sets that have none, or of all when it is
	// set and AllowOverride is not (reference 5.11).
	Policy        v1alpha1.ApplicationsSyncPolicy
	AllowOverride bool
	// Budget limits the removals of sets that say nothing; nil is generate.DefaultBudget.
	Budget *generate.Budget
	// PreservedAnnotations and PreservedLabels survive on all Applications.
	PreservedAnnotations []string
	PreservedLabels      []string
	// DryRun writes nothing but statuses.
	DryRun bool
	// Concurrency is how many sets are evaluated at one time; 0 is 2.
	Concurrency int
	// Generate adjusts the evaluation of all sets.
	Generate generate.Options

	// Forges list repositories and pull requests; nil when the operator turned
	// these generators off.
	Forges rutter.Forges
	// ForgesListed says that the operator listed the hosts that may be asked;
	// without a list only sets of the control plane's namespace may ask.
	ForgesListed bool
	// PermitApp says whether a set of a project may log in as the GitHub App of a
	// Secret; nil allows all. A templated project is none.
	PermitApp func(ctx context.Context, secretName, project string) error
	// Parameters asks the services of plugin generators.
	Parameters Parameters
}

// Parameters asks the service of a plugin generator (reference 5.8).
type Parameters interface {
	// Ask posts the input for the set to the service and returns the items of
	// output.parameters. An answer is complete or an error; the token is never in it.
	Ask(ctx context.Context, s ParameterService, set string, input map[string]any) ([]map[string]any, error)
}

// ParameterService is where such a service is and how to log in.
type ParameterService struct {
	BaseURL string
	Token   string
	// TimeoutSeconds is the longest wait for an answer; 0 is 30.
	TimeoutSeconds int
}
