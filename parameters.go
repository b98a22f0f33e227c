package rutter

import "context"

// Parameters asks the service of a plugin generator (reference 5.8).
type Parameters interface {
	// Ask posts the input for the set to the service and returns the items of
	// output.parameters. An answer is complete or an error; the token is never in it.
	Ask(ctx context.Context, s ParameterService, set string, input map[string]any) ([]map[string]any, error)
}

// ParameterService is where such a service is and how to log in. It is never
// logged: its token is a secret.
type ParameterService struct {
	BaseURL string
	Token   string
	// TimeoutSeconds is the longest wait for an answer; 0 is 30.
	TimeoutSeconds int
}
