// Package registry speaks to registries of the OCI distribution kind (ADAPTER
// ring; the adapters for charts and for artifacts share it): it lists tags,
// finds what a tag names, and fetches manifests and layers by digest.
//
// It is written over plain HTTP, as what matters here is who is told the
// password. A registry may answer a request by naming a realm, a server that
// exchanges the password for a token, so a registry that is hostile, or was
// taken over, could have passwords sent to any place. The rule here: the
// password goes to the registry's own host (any port, TLS as the registry's
// own), and over https to hosts of its parent domain (for registry.example.com:
// example.com and what lies below it), provided that the parent is not a public
// suffix such as github.io. Every other realm is an error that names it. Without
// a login to lose, a token is fetched from wherever the realm is, over https.
//
// A layer may be served from elsewhere: the redirect is followed without the
// login and without the token. All that is fetched is checked against its
// digest, and read up to a limit.
package registry
