package forge

import (
	"context"
	"encoding/base64"
	"strings"

	"github.com/rutterhq/rutter"
)

// login is what a query logs in with. It is never printed.
type login struct {
	// header and value are set on every request of the session.
	header, value string
	// secrets are taken out of what a server says.
	secrets []string
	// digest tells logins apart without revealing them; it is "" for none.
	digest string
	// name says for people where the login lies.
	name string
	// app is set when the login is a GitHub App's.
	app *appLogin
	// aws signs requests.
	aws AWSKey
}

// scrub removes the login from what a server said.
func (l login) scrub(text string) string {
	for _, secret := range l.secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	return text
}

// logIn looks up what the query logs in with.
func (s *session) logIn(ctx context.Context) (login, error) {
	q := s.q
	switch ways := count(q.Token != nil, q.Password != nil, q.AppSecret != ""); {
	case ways > 1:
		return login{}, rutter.Errorf(rutter.CodeInvalid, "there is more than one login (a token, a password, an App): leave one")
	case q.User != "" && q.Password == nil:
		return login{}, rutter.Errorf(rutter.CodeInvalid, "user %s has no password: name its Secret", quote(q.User))
	case q.Provider == rutter.ForgeCodeCommit && ways > 0:
		return login{}, rutter.Errorf(rutter.CodeInvalid, "AWS is logged in to by this process' identity and role: remove the token")
	case q.Provider == rutter.ForgeCodeCommit:
		return s.awsLogin(ctx)
	case q.AppSecret != "":
		return s.appLogin(ctx)
	case q.Token != nil:
		token, err := s.secret(ctx, "tokenRef", *q.Token)
		if err != nil {
			return login{}, err
		}
		return tokenLogin(q, token), nil
	case q.Password != nil:
		password, err := s.secret(ctx, "passwordRef", *q.Password)
		if err != nil {
			return login{}, err
		}
		return passwordLogin(q, password)
	}
	return login{name: "none"}, nil
}

func count(conditions ...bool) int {
	n := 0
	for _, c := range conditions {
		if c {
			n++
		}
	}
	return n
}

// tokenLogin is a token in the header that its provider reads it from.
func tokenLogin(q rutter.ForgeQuery, token string) login {
	l := login{header: "Authorization", value: "Bearer " + token, name: secretName(*q.Token)}
	switch q.Provider {
	case rutter.ForgeGitLab:
		l.header, l.value = "Private-Token", token
	case rutter.ForgeGitea:
		l.value = "token " + token
	case rutter.ForgeAzureDevOps:
		l.value = basic("", token)
	}
	l.secrets = []string{token, strings.TrimPrefix(l.value, "Basic ")}
	l.digest = digestOf(l.header, l.value)
	return l
}

func passwordLogin(q rutter.ForgeQuery, password string) (login, error) {
	if q.User == "" || strings.ContainsFunc(q.User, unsafeRune) || strings.Contains(q.User, ":") {
		return login{}, rutter.Errorf(rutter.CodeInvalid, "user %s cannot log in with a password: write a name without a colon", quote(q.User))
	}
	l := login{header: "Authorization", value: basic(q.User, password), name: secretName(*q.Password)}
	l.secrets = []string{password, strings.TrimPrefix(l.value, "Basic ")}
	l.digest = digestOf(l.header, l.value)
	return l, nil
}

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

func secretName(ref rutter.SecretRef) string {
	if ref.Namespace == "" {
		return ref.Name
	}
	return ref.Namespace + "/" + ref.Name
}

// secret looks a secret up. Files are often saved with a line break at the end.
func (s *session) secret(ctx context.Context, field string, ref rutter.SecretRef) (string, error) {
	if s.opts.Secrets == nil {
		return "", rutter.Errorf(rutter.CodeInvalid, "%s: there are no Secrets to look into here", field)
	}
	text, err := s.opts.Secrets(ctx, ref)
	if err != nil {
		return "", rutter.Errorf(rutter.CodeOf(err), "%s: %w", field, err)
	}
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return "", rutter.Errorf(rutter.CodeInvalid, "%s: key %s of Secret %s is empty: put the login there", field, quote(ref.Key), quote(secretName(ref)))
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "", rutter.Errorf(rutter.CodeInvalid, "%s: key %s of Secret %s has a line break or control character in it: remove it", field, quote(ref.Key), quote(secretName(ref)))
	}
	return text, nil
}
