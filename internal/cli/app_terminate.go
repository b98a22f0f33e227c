package cli

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// appTerminate asks for the end of an operation as the reference's API does: by the
// phase of the operation's state.
func (r *root) appTerminate() *cobra.Command {
	return &cobra.Command{
		Use: "terminate-op NAME...", Short: "End the running operation of Applications", Args: cobra.MinimumNArgs(1),
		Long: "Ends the operation that runs, whatever it does or waits for. Its hooks that run are deleted; what was applied stays. An\n" +
			"automated sync is not begun again before something changes.",
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := r.client()
			if err != nil {
				return err
			}
			const patch = `[{"op":"test","path":"/status/operationState/phase","value":"Running"},{"op":"replace","path":"/status/operationState/phase","value":"Terminating"}]`
			for _, name := range args {
				app := &v1alpha1.Application{}
				app.Namespace, app.Name = r.namespace, name
				err := cl.Status().Patch(c.Context(), app, client.RawPatch("application/json-patch+json", []byte(patch)), fieldOwner)
				switch {
				case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
					return rutter.Errorf(rutter.CodeConflict, "application %q: no operation is in progress", name)
				case err != nil:
					return fmt.Errorf("ask for the end of the operation of application %q: %w", name, err)
				}
				fmt.Fprintf(r.out, "application %s: operation terminating\n", name)
			}
			return nil
		},
	}
}

// seconds is a flag that takes a duration, or a number of seconds as the reference's
// command line does.
type seconds time.Duration

// Set implements pflag.Value.
func (s *seconds) Set(text string) error {
	if n, err := strconv.ParseInt(text, 10, 32); err == nil && n >= 0 {
		*s = seconds(time.Duration(n) * time.Second)
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return errors.New("write a duration such as 30s, or a number of seconds")
	}
	*s = seconds(d)
	return nil
}

// String implements pflag.Value.
func (s *seconds) String() string { return time.Duration(*s).String() }

// Type implements pflag.Value.
func (s *seconds) Type() string { return "duration" }
