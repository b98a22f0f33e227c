package policy

import (
	"encoding/csv"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// Role is a role of a project (6.5), ready for the decisions of RBAC.
type Role struct {
	Name string
	// Subject is proj:<project>:<role>, which is also the subject of its tokens.
	Subject string
	Grants  []Grant
	// Groups are those whose members have the role.
	Groups []string
	// Tokens are those that were issued and not taken back: a token that is not
	// among them is not valid.
	Tokens []v1alpha1.JWTToken
}

// Grant is one policy of a role: p, <subject>, <resource>, <action>, <object>, allow|deny.
type Grant struct {
	Resource, Action, Object string
	Deny                     bool
}

var (
	roleName     = regexp.MustCompile(`^[a-zA-Z0-9]([-_a-zA-Z0-9]*[a-zA-Z0-9])?$`)
	roleObject   = regexp.MustCompile(`^[*\w.-]+(/[*\w.-]+)?$`)
	roleActions  = []string{"get", "create", "update", "delete", "sync", "override", "rollback", "*"}
	roleResource = []string{"applications", "applicationsets", "logs", "exec", "clusters", "repositories"}
)

// Roles reads the roles of an AppProject. What is wrong with one is a problem and
// left out, the rest holds; a role that has a name may always see the project.
func Roles(p *v1alpha1.AppProject) (roles []Role, problems []error) {
	seen := map[string]bool{}
	for i, r := range p.Spec.Roles {
		at := fmt.Sprintf("spec.roles[%d]", i)
		switch {
		case !roleName.MatchString(r.Name):
			problems = append(problems, rutter.Errorf(rutter.CodeInvalid, "%s.name: %q: use letters, digits, and - or _ between them", at, r.Name))
			continue
		case seen[r.Name]:
			problems = append(problems, rutter.Errorf(rutter.CodeInvalid, "%s.name: role %q is there already: write its policies in one role", at, r.Name))
			continue
		}
		seen[r.Name] = true
		role := Role{Name: r.Name, Subject: "proj:" + p.Name + ":" + r.Name, Tokens: tokens(p, r), Grants: []Grant{{Resource: "projects", Action: "get", Object: p.Name}}}
		for j, text := range r.Policies {
			g, err := parseGrant(p.Name, role.Subject, text)
			switch {
			case err != nil:
				problems = append(problems, rutter.Errorf(rutter.CodeInvalid, "%s.policies[%d] %q: %w", at, j, text, err))
			case slices.Contains(role.Grants, g):
				problems = append(problems, rutter.Errorf(rutter.CodeInvalid, "%s.policies[%d] %q: it is there already: take one out", at, j, text))
			default:
				role.Grants = append(role.Grants, g)
			}
		}
		for j, text := range r.Groups {
			group, err := parseGroup(text)
			switch {
			case err != nil:
				problems = append(problems, rutter.Errorf(rutter.CodeInvalid, "%s.groups[%d] %q: %w", at, j, text, err))
			case slices.Contains(role.Groups, group):
				problems = append(problems, rutter.Errorf(rutter.CodeInvalid, "%s.groups[%d] %q: it is there already: take one out", at, j, text))
			default:
				role.Groups = append(role.Groups, group)
			}
		}
		roles = append(roles, role)
	}
	return roles, problems
}

// tokens are those in the status and, as older versions keep them, in the spec.
func tokens(p *v1alpha1.AppProject, r v1alpha1.ProjectRole) []v1alpha1.JWTToken {
	out := slices.Clone(p.Status.JWTTokensByRole[r.Name].Items)
	for _, t := range r.JWTTokens {
		if !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}

// Listed reports whether a token is one of the role's: by its id, or where it
// has none by the time at which it was issued.
func (r Role) Listed(id string, issuedAt int64) bool {
	return slices.ContainsFunc(r.Tokens, func(t v1alpha1.JWTToken) bool {
		if id != "" {
			return t.ID == id
		}
		return t.ID == "" && t.IssuedAt == issuedAt
	})
}

func parseGrant(project, subject, text string) (Grant, error) {
	in := csv.NewReader(strings.NewReader(text))
	in.TrimLeadingSpace = true
	words, err := in.Read()
	if err != nil || len(words) != 6 || strings.ContainsAny(text, "\r\n") {
		return Grant{}, rutter.Errorf(rutter.CodeInvalid, "write p, %s, RESOURCE, ACTION, %s/OBJECT, allow", subject, project)
	}
	for i := range words {
		words[i] = strings.TrimSpace(words[i])
	}
	g := Grant{Resource: words[2], Action: words[3], Object: words[4], Deny: words[5] == "deny"}
	object, ours := strings.CutPrefix(g.Object, project+"/")
	switch {
	case words[0] != "p":
		return g, rutter.Errorf(rutter.CodeInvalid, "it begins with %q: write p", words[0])
	case words[1] != subject:
		return g, rutter.Errorf(rutter.CodeInvalid, "its subject is %q: a role speaks for itself only, as %s", words[1], subject)
	case !slices.Contains(roleResource, g.Resource):
		return g, rutter.Errorf(rutter.CodeInvalid, "resource %q is none of %s", g.Resource, strings.Join(roleResource, ", "))
	case !slices.Contains(roleActions, g.Action) && !hasAnyPrefix(g.Action, "action/", "update/", "delete/"):
		return g, rutter.Errorf(rutter.CodeInvalid, "action %q is none of %s, action/…, update/…, delete/…", g.Action, strings.Join(roleActions, ", "))
	case !ours || !roleObject.MatchString(object):
		return g, rutter.Errorf(rutter.CodeInvalid, "object %q is not of the project: write %s/NAME or %s/NAMESPACE/NAME, with * for any", g.Object, project, project)
	case words[5] != "allow" && words[5] != "deny":
		return g, rutter.Errorf(rutter.CodeInvalid, "effect %q is neither allow nor deny", words[5])
	}
	return g, nil
}

// parseGroup reads the name of a group; one with commas is written in quotes.
func parseGroup(text string) (string, error) {
	name := text
	if len(text) > 1 && strings.HasPrefix(text, `"`) && strings.HasSuffix(text, `"`) {
		name = text[1 : len(text)-1]
	} else if strings.Contains(text, ",") {
		return "", rutter.Errorf(rutter.CodeInvalid, `it has a comma: write the name in double quotes, "%s"`, text)
	}
	switch {
	case strings.TrimSpace(name) == "":
		return "", rutter.Errorf(rutter.CodeInvalid, "it is empty")
	case strings.TrimSpace(text) != text:
		return "", rutter.Errorf(rutter.CodeInvalid, "it begins or ends with a space")
	case strings.ContainsAny(name, "\"\n\r\t"):
		return "", rutter.Errorf(rutter.CodeInvalid, "it has a quote, a tab or a line break in it")
	}
	return name, nil
}

func hasAnyPrefix(s string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return len(s) > len(p) && strings.HasPrefix(s, p) })
}
