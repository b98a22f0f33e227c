package remote

import "net/http"

// Validators let a server answer that nothing has changed.
type Validators struct{ etag, modified string }

// ValidatorsOf takes them from an answer.
func ValidatorsOf(resp *http.Response) Validators {
	const longest = 1024
	v := Validators{etag: resp.Header.Get("ETag"), modified: resp.Header.Get("Last-Modified")}
	if len(v.etag) > longest {
		v.etag = ""
	}
	if len(v.modified) > longest {
		v.modified = ""
	}
	return v
}

// Set puts them on a request.
func (v Validators) Set(h http.Header) {
	if v.etag != "" {
		h.Set("If-None-Match", v.etag)
	}
	if v.modified != "" {
		h.Set("If-Modified-Since", v.modified)
	}
}
