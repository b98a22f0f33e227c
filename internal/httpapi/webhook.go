package httpapi

import (
	"errors"
	"io"
	"net/http"
)

// maxPayload bounds a webhook's body, which is read into memory once to check
// its signature (reference 8.5 allows 50 MB; a push needs a few kilobytes).
const maxPayload = 10 << 20

// Push is one push as a provider tells it.
type Push struct {
	// URLs are the spellings under which the repository may be declared.
	URLs []string
	// Ref is the pushed ref, such as refs/heads/main; empty when not told.
	Ref string
	// DefaultBranch is the repository's default branch; empty when not told.
	DefaultBranch string
	// At is where the repository is hosted, for questions to its service.
	At Place
}

// webhook answers 401 to a wrong signature, 404 for a provider that is not
// configured, 400 to what cannot be read, 413 to what is too large; nothing of
// that wakes anybody (scenario V5).
func (s *Server) webhook(w http.ResponseWriter, r *http.Request) {
	p := providerOf(r.Header)
	if p == nil {
		http.Error(w, "unknown webhook: no header of a provider that is known", http.StatusBadRequest)
		return
	}
	secret := p.secret(s.opts.Secrets())
	if secret == "" && !s.opts.AllowUnsigned {
		http.Error(w, p.name+" webhooks are not configured: set "+p.secretKey+" in the Secret argocd-secret", http.StatusNotFound)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPayload))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		http.Error(w, "payload too large", http.StatusRequestEntityTooLarge)
		return
	case err != nil:
		http.Error(w, "cannot read the payload", http.StatusBadRequest)
		return
	case secret != "" && !p.verify(r.Header, body, secret):
		http.Error(w, "signature does not match", http.StatusUnauthorized)
		return
	}
	s.tell(w, r, p, body)
}

// tell wakes whom an event concerns. What is no event is taken, and wakes nobody.
func (s *Server) tell(w http.ResponseWriter, r *http.Request, p *provider, body []byte) {
	e, err := p.read(r.Header, body)
	switch {
	case err != nil || e.push != nil && len(e.push.URLs) == 0 || e.pull != nil && e.pull.At.Repo == "":
		http.Error(w, "the payload names no repository", http.StatusBadRequest)
		return
	case e.push != nil:
		n := s.opts.Pushed(*e.push)
		s.opts.Logger.Info("webhook", "provider", p.name, "ref", e.push.Ref, "woken", n)
	case e.pull != nil:
		n := s.opts.Pulled(*e.pull)
		s.opts.Logger.Info("webhook", "provider", p.name, "pullRequest", e.pull.Number, "woken", n)
	}
	w.WriteHeader(http.StatusOK)
}
