// Package remote is how the adapters for charts, artifacts and files on the
// web reach a server (ADAPTER ring; they share it, and it knows none of them):
// the parsed form of a URL, the choice of the credential, and an HTTP client
// that keeps the credential where it belongs.
//
// Both ends are hostile until shown otherwise. What tenants write is parsed
// against an allow-list of forms. What a server answers is read up to a limit
// and within a time. A credential is bound to scheme, host and path prefix: it
// is put on a request by the transport, once for each hop, and only when the
// URL of that very hop lies within the bound, so neither an index nor a
// redirect can take it elsewhere. Addresses of the link (among them the
// clouds' metadata services) are refused after the name was resolved.
package remote
