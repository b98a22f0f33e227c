package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
)

// refusal is an answer of the API server that says no. It keeps the server's
// status for apierrors.IsInvalid and its like.
type refusal struct{ status metav1.Status }

// Error implements error with the server's words.
func (r *refusal) Error() string { return r.status.Message }

// Status implements apierrors.APIStatus.
func (r *refusal) Status() metav1.Status { return r.status }

// statusError turns the server's refusal into a coded error.
func statusError(code int, body []byte) error {
	var s metav1.Status
	if err := json.Unmarshal(body, &s); err != nil || s.Kind != "Status" || s.Message == "" {
		s = metav1.Status{Message: strings.TrimSpace(string(body[:min(len(body), 300)])), Reason: metav1.StatusReasonUnknown}
		if s.Message == "" {
			s.Message = http.StatusText(code)
		}
	}
	s.Code, s.Message = int32(code), oneLine(s.Message) //nolint:gosec // an HTTP status
	return &rutter.Error{Code: codeOf(s), Err: &refusal{status: s}}
}

// codeOf classifies a refusal.
func codeOf(s metav1.Status) rutter.Code {
	switch s.Code {
	case http.StatusNotFound, http.StatusGone:
		return rutter.CodeNotFound
	case http.StatusForbidden, http.StatusUnauthorized:
		return rutter.CodeForbidden
	case http.StatusConflict:
		return rutter.CodeConflict
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusMethodNotAllowed, http.StatusUnsupportedMediaType, http.StatusRequestEntityTooLarge:
		return rutter.CodeInvalid
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusBadGateway:
		return rutter.CodeUnavailable
	}
	// What does not fit the schema is answered as if the server had failed.
	if strings.HasPrefix(s.Message, "failed to create typed patch object") ||
		strings.HasPrefix(s.Message, "failed to convert new object") && strings.Contains(s.Message, "unable to convert unstructured object") {
		return rutter.CodeInvalid
	}
	return rutter.CodeInternal
}

// refused returns the server's status when err is its answer, and not the lack of one.
func refused(err error) (metav1.Status, bool) {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.status, true
	}
	return metav1.Status{}, false
}

// unserved reports whether err says that there is no such path, rather than no
// such object: the kind is not served (any more).
func unserved(err error) bool {
	s, ok := refused(err)
	return ok && s.Code == http.StatusNotFound && (s.Details == nil || s.Details.Name == "")
}

// expired reports whether err says that a position in the history is too old.
func expired(err error) bool {
	s, ok := refused(err)
	return ok && (s.Code == http.StatusGone || s.Reason == metav1.StatusReasonExpired)
}

// bare takes the URL off an error of net/http: it is long and says nothing new.
func bare(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// noAnswer is the error of a call that got none.
func (m *member) noAnswer(ctx context.Context, err error) error {
	if down := m.breaker.check(); down != nil {
		return down
	}
	if m.ctx.Err() != nil {
		return rutter.Errorf(rutter.CodeUnavailable, "cluster %s is no longer declared, or was declared anew: %w", m.Info().Name, context.Canceled)
	}
	if errors.Is(context.Cause(ctx), errNoTime) {
		return rutter.Errorf(rutter.CodeUnavailable, "cluster %s did not answer within %s: %w", m.Info().Name, m.timing.call, context.DeadlineExceeded)
	}
	if errors.Is(err, context.Canceled) {
		return rutter.Errorf(rutter.CodeUnavailable, "stopped before cluster %s answered: %w", m.Info().Name, context.Canceled)
	}
	return rutter.Errorf(rutter.CodeUnavailable, "cluster %s does not answer: %w", m.Info().Name, bare(err))
}

// withoutSecrets is err without the values of obj, if obj is a Secret: a server
// may quote what it could not take.
func withoutSecrets(err error, obj *unstructured.Unstructured) error {
	s, ok := refused(err)
	if !ok || obj.GetKind() != "Secret" {
		return err
	}
	if before, _, quotes := strings.Cut(s.Message, ", got &value"); quotes {
		s.Message = before
	}
	for _, by := range []string{"denied the request", "denied request"} { // a webhook, or a policy
		if before, _, speaks := strings.Cut(s.Message, by); speaks {
			s.Message = before + by + " (its words are not shown: they may quote the Secret)"
		}
	}
	s.Message = without(s.Message, annotationsOf(obj))
	for _, field := range []string{"data", "stringData"} {
		s.Message = without(s.Message, obj.Object[field])
	}
	s.Details = nil
	return &rutter.Error{Code: rutter.CodeOf(err), Err: &refusal{status: s}}
}

// annotationsOf are the values of annotations, in which Secrets may be kept as well.
func annotationsOf(obj *unstructured.Unstructured) map[string]any {
	out := map[string]any{}
	for key, value := range obj.GetAnnotations() {
		if !strings.HasPrefix(key, "argocd.argoproj.io/") && !strings.HasPrefix(key, "rutter.dev/") {
			out[key] = value
		}
	}
	return out
}

// without is text in which no value that v holds stands.
func without(text string, v any) string {
	switch v := v.(type) {
	case nil:
	case map[string]any:
		for _, x := range v {
			text = without(text, x)
		}
	case []any:
		for _, x := range v {
			text = without(text, x)
		}
	default:
		plain := fmt.Sprint(v)
		quoted := strconv.Quote(plain)
		for _, form := range []string{plain, oneLine(plain), quoted[1 : len(quoted)-1]} {
			if form != "" {
				text = strings.ReplaceAll(text, form, "…")
			}
		}
	}
	return text
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// describe names an object in an error.
func describe(gvk rutter.GVK, namespace, name string) string {
	if namespace == "" {
		return fmt.Sprintf("%s %q", gvk.Kind, name)
	}
	return fmt.Sprintf("%s %q in namespace %q", gvk.Kind, name, namespace)
}
