package git

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/rutterhq/rutter"
)

// lfsHost is a Git server with LFS: the batch API beside the repository, and
// the content either there or at another host.
type lfsHost struct {
	*httptest.Server

	// storage is where content is downloaded from: itself, or elsewhere.
	storage *httptest.Server
	// answer changes what the batch API says; nil for nothing to change.
	answer func(w http.ResponseWriter, object map[string]any) bool
	// content changes what is downloaded.
	content func(w http.ResponseWriter, r *http.Request, data []byte) []byte

	mu      sync.Mutex
	objects map[string][]byte
	// batches and downloads are the Authorization and X-Token of requests.
	batches, downloads []string
}

// serveLFS lets those in whom allow lets in. With apart, content is at another
// host, which wants a token that the batch API gives out.
func serveLFS(t *testing.T, o *origin, apart bool, allow func(*http.Request) bool) *lfsHost {
	t.Helper()
	h := &lfsHost{objects: map[string][]byte{}}
	inner := serveHTTP(t, o, false, allow).Config.Handler
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/fleet.git/info/lfs/objects/batch") && r.Method == http.MethodPost:
			h.batch(w, r, allow)
		case strings.Contains(r.URL.Path, "/fleet.git/info/lfs/content/"):
			if allow != nil && !allow(r) {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			h.download(w, r)
		default:
			inner.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(h.Close)
	h.storage = h.Server
	if apart {
		h.storage = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Token") != "st0rage" {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			h.download(w, r)
		}))
		t.Cleanup(h.storage.Close)
	}
	return h
}

func (h *lfsHost) batch(w http.ResponseWriter, r *http.Request, allow func(*http.Request) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.batches = append(h.batches, r.Header.Get("Authorization")+r.Header.Get("X-Token"))
	var ask struct {
		Operation string   `json:"operation"`
		Transfers []string `json:"transfers"`
		Objects   []struct {
			OID  string `json:"oid"`
			Size int64  `json:"size"`
		} `json:"objects"`
	}
	switch {
	case allow != nil && !allow(r):
		w.WriteHeader(http.StatusUnauthorized)
		return
	case r.Header.Get("Accept") != lfsMedia || r.Header.Get("Content-Type") != lfsMedia ||
		json.NewDecoder(r.Body).Decode(&ask) != nil || ask.Operation != "download" || len(ask.Objects) != 1:
		w.WriteHeader(http.StatusUnprocessableEntity)
		return
	}
	w.Header().Set("Content-Type", lfsMedia)
	o := map[string]any{"oid": ask.Objects[0].OID, "size": ask.Objects[0].Size}
	if data, ok := h.objects[ask.Objects[0].OID]; !ok || int64(len(data)) != ask.Objects[0].Size {
		o["error"] = map[string]any{"code": 404, "message": "Object does not exist"}
	} else {
		download := map[string]any{"href": h.storage.URL + "/team/fleet.git/info/lfs/content/" + ask.Objects[0].OID}
		if h.storage != h.Server {
			download["header"] = map[string]string{"X-Token": "st0rage"}
		}
		o["actions"] = map[string]any{"download": download}
	}
	if h.answer != nil && h.answer(w, o) {
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"transfer": "basic", "objects": []any{o}}) //nolint:errchkjson // who asked notices
}

func (h *lfsHost) download(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.downloads = append(h.downloads, r.Header.Get("Authorization")+r.Header.Get("X-Token"))
	data := h.objects[filepath.Base(r.URL.Path)]
	if h.content != nil {
		if data = h.content(w, r, data); data == nil {
			return
		}
	}
	_, _ = w.Write(data)
}

// add keeps content and returns its pointer.
func (h *lfsHost) add(content string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	sum := sha256.Sum256([]byte(content))
	h.objects[hex.EncodeToString(sum[:])] = []byte(content)
	return pointerTo(content)
}

func pointerTo(content string) string {
	sum := sha256.Sum256([]byte(content))
	return fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n", hex.EncodeToString(sum[:]), len(content))
}

func TestLFS(t *testing.T) {
	const secret = "s3cr3t"
	stray := func(field string, value any) func(http.ResponseWriter, map[string]any) bool {
		return func(_ http.ResponseWriter, o map[string]any) bool {
			if field == "href" {
				o["actions"].(map[string]any)["download"].(map[string]any)["href"] = value
			} else {
				o[field] = value
			}
			return false
		}
	}
	status := func(code int) func(http.ResponseWriter, map[string]any) bool {
		return func(w http.ResponseWriter, _ map[string]any) bool { w.WriteHeader(code); return true }
	}
	bytes := func(change func(string) string) func(http.ResponseWriter, *http.Request, []byte) []byte {
		return func(_ http.ResponseWriter, _ *http.Request, data []byte) []byte { return []byte(change(string(data))) }
	}
	tests := []struct {
		name    string
		apart   bool
		missing bool
		answer  func(http.ResponseWriter, map[string]any) bool
		content func(http.ResponseWriter, *http.Request, []byte) []byte
		big     bool
		code    rutter.Code
		words   string
	}{
		{name: "content beside the repository"},
		{name: "content at another host", apart: true},
		{name: "content that was never pushed", missing: true, code: rutter.CodeNotFound, words: "git lfs push"},
		{name: "other content of that size", content: bytes(strings.ToUpper), code: rutter.CodeUnavailable, words: "other content"},
		{name: "less content", content: bytes(func(s string) string { return s[1:] }), code: rutter.CodeUnavailable, words: "other content"},
		{name: "more content", content: bytes(func(s string) string { return s + "x" }), code: rutter.CodeUnavailable, words: "more than"},
		{name: "more than a file may have", big: true, code: rutter.CodeInvalid, words: "more than the 4096"},
		{name: "another object", answer: stray("oid", strings.Repeat("a", 64)), code: rutter.CodeUnavailable, words: "did not answer as"},
		{name: "object is gone", answer: stray("error", map[string]any{"code": 410, "message": "gone\x1b[31m"}), code: rutter.CodeNotFound, words: "410"},
		{name: "object fails", answer: stray("error", map[string]any{"code": 500, "message": "sorry"}), code: rutter.CodeUnavailable, words: "sorry"},
		{name: "no action", answer: stray("actions", map[string]any{}), code: rutter.CodeNotFound, words: "does not have it"},
		{name: "a file of this machine", answer: stray("href", "file:///etc/passwd"), code: rutter.CodeUnavailable, words: "cannot be used"},
		{name: "a metadata service", answer: stray("href", "http://169.254.169.254/latest"), code: rutter.CodeForbidden, words: "link-local"},
		{name: "server is away", answer: status(http.StatusServiceUnavailable), code: rutter.CodeUnavailable, words: "503"},
		{name: "server limits", answer: status(http.StatusTooManyRequests), code: rutter.CodeUnavailable, words: "429"},
		{name: "server refuses", answer: status(http.StatusForbidden), code: rutter.CodeForbidden, words: "read access"},
		{name: "no LFS server", answer: status(http.StatusNotFound), code: rutter.CodeNotFound, words: "404"},
		{name: "not JSON", answer: func(w http.ResponseWriter, _ map[string]any) bool { fmt.Fprint(w, "<html>"); return true }, code: rutter.CodeUnavailable, words: "did not answer as"},
		{name: "download fails", content: func(w http.ResponseWriter, _ *http.Request, _ []byte) []byte {
			w.WriteHeader(http.StatusBadGateway)
			return nil
		}, code: rutter.CodeUnavailable, words: "502"},
	}
	const content = "crds: from a very large file\n"
	o := newOrigin(t)
	o.commit("main", "crds/big.yaml", pointerTo(content), "small.yaml", "a: 1\n", "huge", pointerTo(strings.Repeat("x", 5000)))
	hosts := map[bool]*lfsHost{false: serveLFS(t, o, false, basic("ann", secret)), true: serveLFS(t, o, true, basic("ann", secret))}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, name, size := hosts[tt.apart], "crds/big.yaml", len(content)
			if tt.big {
				name, size = "huge", 5000
			}
			h.answer, h.content, h.objects, h.batches, h.downloads = tt.answer, tt.content, map[string][]byte{}, nil, nil
			if !tt.missing {
				h.add(content)
			}
			f := newFetcher(t, Options{MaxFileBytes: 4096})
			f.SetCredentials([]rutter.RepoCredential{{URL: h.URL + "/team/fleet.git", Username: "ann", Password: secret, EnableLFS: true}}, rutter.RepoTrust{})
			s := snap(t, f, h.URL+"/team/fleet", "main")
			wantFile(t, s, "small.yaml", "a: 1\n")
			if info, err := s.Stat(name); err != nil || info.Size() != int64(size) {
				t.Errorf("Stat = %v, %v; want the size of the content", info, err)
			}
			if len(h.batches) > 0 {
				t.Error("the server was asked for a file that nobody has read")
			}
			got, err := s.ReadFile(name)
			if rutter.CodeOf(err) != tt.code || err != nil && (!strings.Contains(err.Error(), tt.words) || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "\x1b")) {
				t.Fatalf("%q, %v; want code %q and the words %q", got, err, tt.code, tt.words)
			}
			if err == nil {
				wantFile(t, s, "crds/big.yaml", content)
				if len(h.batches) != 1 || len(h.downloads) != 1 {
					t.Errorf("%d batches and %d downloads, want one of each", len(h.batches), len(h.downloads))
				}
			}
			if tt.apart && fmt.Sprint(h.downloads) != "[st0rage]" {
				t.Errorf("the other host got %q, want its token alone", h.downloads)
			}
			if tt.big && len(h.batches) > 0 {
				t.Error("the server was asked for what is too large")
			}
			if err == nil || tt.big {
				return
			}
			// A failure is not kept: the next who reads asks again.
			h.answer, h.content = nil, nil
			h.add(content)
			wantFile(t, s, "crds/big.yaml", content)
		})
	}
}

// TestLFSLoginStaysAtHome: where the content's own host sends a download to
// another, that one sees neither the repository's login nor the action's headers.
func TestLFSLoginStaysAtHome(t *testing.T) {
	for _, apart := range []bool{false, true} {
		o := newOrigin(t)
		h := serveLFS(t, o, apart, basic("ann", "s3cr3t"))
		o.commit("main", "big", h.add("content"))
		var seen []http.Header
		other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen = append(seen, r.Header)
			fmt.Fprint(w, "content")
		}))
		t.Cleanup(other.Close)
		h.content = func(w http.ResponseWriter, r *http.Request, _ []byte) []byte {
			http.Redirect(w, r, other.URL+"/signed?signature=abc", http.StatusFound)
			return nil
		}
		f := newFetcher(t, Options{})
		f.SetCredentials([]rutter.RepoCredential{{URL: h.URL + "/team", Template: true, Username: "ann", Password: "s3cr3t", EnableLFS: true}}, rutter.RepoTrust{})
		wantFile(t, snap(t, f, h.URL+"/team/fleet.git", "main"), "big", "content")
		for _, header := range seen {
			for _, name := range []string{"Authorization", "X-Token", "Referer", "Cookie"} {
				if v := header.Get(name); v != "" {
					t.Errorf("the other host got %s: %s", name, v)
				}
			}
		}
		if len(seen) != 1 {
			t.Errorf("%d requests arrived, want 1", len(seen))
		}
	}
}

func TestLFSIsKeptAndVerified(t *testing.T) {
	o := newOrigin(t)
	h := serveLFS(t, o, false, nil)
	o.commit("main", "big", h.add("content"))
	dir := t.TempDir()
	start := func() (*Fetcher, rutter.Snapshot) {
		f := newFetcher(t, Options{Dir: dir})
		f.SetCredentials([]rutter.RepoCredential{{URL: h.URL + "/fleet.git", EnableLFS: true}}, rutter.RepoTrust{})
		return f, snap(t, f, h.URL+"/fleet.git", "main")
	}
	f, s := start()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { wantFile(t, s, "big", "content") })
	}
	all.Wait()
	if n := f.Stats().Downloads; n != 1 {
		t.Errorf("%d downloads for eight readers at one time, want 1", n)
	}
	f, s = start()
	wantFile(t, s, "big", "content")
	if n := f.Stats().Downloads; n != 0 {
		t.Errorf("%d downloads after a restart, want 0", n)
	}
	found, _ := filepath.Glob(filepath.Join(dir, "mirrors", "*.lfs", "*", "*"))
	if len(found) != 1 {
		t.Fatalf("kept: %v", found)
	}
	if err := os.WriteFile(found[0], []byte("c0ntent"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantFile(t, s, "big", "content")
	if n := f.Stats().Downloads; n != 1 {
		t.Errorf("%d downloads for a file that was damaged, want 1", n)
	}
}

// TestLFSHash: a render of pointers is not taken for one of content, and
// neither is read for it.
func TestLFSHash(t *testing.T) {
	o := newOrigin(t)
	h := serveLFS(t, o, false, nil)
	url := h.URL + "/fleet.git"
	o.commit("main", "big", h.add("one"), "small", "x")
	f := newFetcher(t, Options{})
	hash := func(lfs bool, name string) string {
		t.Helper()
		f.SetCredentials([]rutter.RepoCredential{{URL: url, EnableLFS: lfs}}, rutter.RepoTrust{})
		got, err := snap(t, f, url, "main").Hash(rutter.InputFile, name)
		if err != nil || len(got) != 40 {
			t.Errorf("Hash(%s) = %q, %v", name, got, err)
		}
		return got
	}
	plain, one, small := hash(false, "big"), hash(true, "big"), hash(true, "small")
	if plain != o.git("-C", o.work, "rev-parse", "HEAD:big") || one == plain {
		t.Errorf("%s without LFS, %s with", plain, one)
	}
	f.SetCredentials([]rutter.RepoCredential{{URL: url}}, rutter.RepoTrust{})
	wantFile(t, snap(t, f, url, "main"), "big", pointerTo("one"))
	o.commit("main", "big", h.add("two"))
	if hash(true, "big") == one || hash(true, "small") != small {
		t.Error("the hash does not follow the content")
	}
	if n := f.Stats().Downloads; n != 0 {
		t.Errorf("%d downloads for hashes", n)
	}
}

// TestLFSKnowsWhoMayRead: naming somebody else's content does not give it out.
func TestLFSKnowsWhoMayRead(t *testing.T) {
	mine, theirs := newOrigin(t), newOrigin(t)
	a, b := serveLFS(t, mine, false, nil), serveLFS(t, theirs, false, nil)
	pointer := b.add("their secret")
	mine.commit("main", "big", pointer)
	theirs.commit("main", "big", pointer)
	f := newFetcher(t, Options{})
	f.SetCredentials([]rutter.RepoCredential{{URL: a.URL, Template: true, EnableLFS: true, Username: "u", Password: "p"}, {URL: b.URL, Template: true, EnableLFS: true, Username: "u", Password: "p"}}, rutter.RepoTrust{})
	wantFile(t, snap(t, f, b.URL+"/fleet.git", "main"), "big", "their secret")
	if got, err := snap(t, f, a.URL+"/fleet.git", "main").ReadFile("big"); rutter.CodeOf(err) != rutter.CodeNotFound {
		t.Errorf("%q, %v; want that it is not found", got, err)
	}
}

func TestLFSOverSSH(t *testing.T) {
	o := newOrigin(t)
	h := serveLFS(t, o, false, func(r *http.Request) bool { return r.Header.Get("X-Token") == "fr0m-ssh" || r.Method == http.MethodGet })
	s := serveSSH(t, filepath.Dir(o.bare))
	s.lfs = fmt.Sprintf(`{"href":%q,"header":{"X-Token":"fr0m-ssh"},"expires_in":60}`, h.URL+"/fleet.git/info/lfs")
	o.commit("main", "big", h.add("content"))
	f := newFetcher(t, Options{})
	url := "ssh://git@" + s.addr + "/fleet.git"
	f.SetCredentials([]rutter.RepoCredential{{URL: url, SSHPrivateKey: s.key, EnableLFS: true}}, rutter.RepoTrust{KnownHosts: knownhosts.Line([]string{knownhosts.Normalize(s.addr)}, s.host.PublicKey())})
	wantFile(t, snap(t, f, url, "main"), "big", "content")
	if s.asked != "'/fleet.git' download" {
		t.Errorf("the server was asked %q", s.asked)
	}
	if fmt.Sprint(h.batches) != "[fr0m-ssh]" {
		t.Errorf("the LFS server got %q", h.batches)
	}
}

func FuzzParsePointer(f *testing.F) {
	good := pointerTo("content")
	for _, s := range []string{good, strings.TrimSuffix(good, "\n"), good + "x\n", strings.Replace(good, "size ", "size -", 1), strings.Replace(good, "size ", "size +", 1), "version https://git-lfs.github.com/spec/v1\n", ""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, ok := parsePointer(data)
		if ok && (len(p.oid) != 64 || p.size < 0 || !filepath.IsLocal(p.oid) || !strings.Contains(string(data), p.oid)) {
			t.Errorf("%q is %+v", data, p)
		}
	})
}
