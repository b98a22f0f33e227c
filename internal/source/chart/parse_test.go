package chart

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/rutterhq/rutter"
)

// shown is an index in the form in which tests compare it.
func shown(i *index) map[string][]string {
	out := map[string][]string{}
	for name, releases := range i.charts {
		for _, r := range releases {
			out[name] = append(out[name], strings.TrimSpace(r.version+" "+r.url+" "+strings.TrimPrefix(r.digest.String(), "sha256:")))
		}
	}
	return out
}

func TestParseIndex(t *testing.T) {
	sum := strings.Repeat("ab", 32)
	tests := []struct {
		name    string
		reason  string
		text    string
		want    map[string][]string
		skipped int
	}{
		{
			name: "as helm writes it",
			text: "apiVersion: v1\nentries:\n  app:\n  - apiVersion: v2\n    created: \"2024-01-01T00:00:00Z\"\n    dependencies:\n    - name: common\n      repository: https://x\n      version: 9.9.9\n    description: |\n      version: 6.6.6\n      - urls:\n    digest: " + sum + "\n    name: app\n    urls:\n    - https://example.com/app-1.0.0.tgz\n    - second\n    version: 1.0.0\n  - urls:\n    - app-0.9.0.tgz\n    version: 0.9.0\n  other-app:\n  - version: 2.0.0+build.1\n    urls: [charts/o.tgz]\ngenerated: \"2024\"\n",
			want: map[string][]string{"app": {"1.0.0 https://example.com/app-1.0.0.tgz " + sum, "0.9.0 app-0.9.0.tgz"}, "other-app": {"2.0.0+build.1 charts/o.tgz"}},
		},
		{
			name: "indented lists, quotes, comments, Windows, a mark",
			text: "\ufeff# an index\r\n---\r\n\"entries\": # here\r\n    'app':\r\n        # one\r\n        -   \"version\": '1.0.0' # first\r\n            urls:\r\n                # where\r\n                - \"a.tgz\"\r\n        -\r\n            version: 2.0.0\r\n            urls:\r\n            - b.tgz\r\napiVersion: v1\r\n",
			want: map[string][]string{"app": {"1.0.0 a.tgz", "2.0.0 b.tgz"}},
		},
		{
			name: "flow style", reason: "a chart, an entry, or everything in one line",
			text: "entries:\n  a: [{version: 1.0.0, urls: [a.tgz]}]\n  b:\n  - {version: 1.0.0, urls: [b.tgz]}\n  c: []\n  d: null\n  e:\n",
			want: map[string][]string{"a": {"1.0.0 a.tgz"}, "b": {"1.0.0 b.tgz"}},
		},
		{
			name: "all in braces over lines",
			text: "entries: {\n  a: [{version: 1.0.0,\n    urls: [a.tgz]}],\n}\napiVersion: v1\n",
			want: map[string][]string{"a": {"1.0.0 a.tgz"}},
		},
		{
			name: "JSON",
			text: ` {"apiVersion":"v1","x":{"y":[1,{"z":[]}]},"entries":{"a":[{"version":"1.0.0","urls":["a.tgz"],"digest":"sha256:` + sum + `"},{"version":5,"urls":["b"]},{"version":"2.0.0","urls":["c.tgz"]}],"b":null,"c":[]},"generated":"now"}`,
			want: map[string][]string{"a": {"1.0.0 a.tgz " + sum, "2.0.0 c.tgz"}}, skipped: 1,
		},
		{name: "none", text: "apiVersion: v1\nentries: {}\n", want: map[string][]string{}},
		{
			name: "entries that cannot be used", reason: "each costs only itself",
			text: "entries:\n  ..:\n  - version: 1.0.0\n    urls: [x]\n  a/b:\n  - version: 1.0.0\n    urls: [x]\n  good:\n  - version: ../../1\n    urls: [x]\n  - version: not-semver\n    urls: [x]\n  - version: 1.0.0\n  - urls: [x]\n  - version: [1]\n    urls: [x]\n  - version: \"1.0.0\n    urls: [x]\n  - version: 1.0.1\n    urls: [ok.tgz]\n  - version: *nowhere\n    urls: [x]\n  - just text\n  - version: 1.0.2\n    urls:\n    - ''\n    - late.tgz\n",
			want: map[string][]string{"good": {"1.0.1 ok.tgz", "1.0.2 late.tgz"}}, skipped: 10,
		},
		{
			name: "a long line", reason: "an icon in a data URL is passed over",
			text: "entries:\n  a:\n  - icon: data:" + strings.Repeat("x", 3<<20) + "\n    version: 1.0.0\n    urls: [a.tgz]\n  - version: " + strings.Repeat("1", 3<<20) + "\n    urls: [x]\n",
			want: map[string][]string{"a": {"1.0.0 a.tgz"}}, skipped: 1,
		},
		{name: "a digest of another kind", reason: "protects nothing", text: "entries:\n  a:\n  - version: 1.0.0\n    urls: [a.tgz]\n    digest: d41d8cd9\n", want: map[string][]string{"a": {"1.0.0 a.tgz"}}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			for reader, in := range map[string]*index{"whole": mustParse(t, tc.text, false), "in bytes": mustParse(t, tc.text, true)} {
				if diff := cmp.Diff(tc.want, shown(in)); diff != "" {
					t.Errorf("%s; %s (-want +got):\n%s", reader, tc.reason, diff)
				}
				if in.skipped != tc.skipped {
					t.Errorf("%s: skipped %d, want %d", reader, in.skipped, tc.skipped)
				}
			}
		})
	}
}

func mustParse(t *testing.T, text string, slow bool) *index {
	t.Helper()
	var i *index
	var err error
	if slow {
		i, err = parseIndex(iotest.OneByteReader(strings.NewReader(text)))
	} else {
		i, err = parseIndex(strings.NewReader(text))
	}
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func TestIndexesThatAreNone(t *testing.T) {
	tests := map[string]string{
		"":                                 "empty",
		" \n\n":                            "empty",
		"<!doctype html><html></html>":     "web page",
		"apiVersion: v1\n":                 "no entries",
		`{"apiVersion":"v1"}`:              "no entries",
		`{"entries":[1]}`:                  "no valid JSON",
		`{"entries":{"a":[{"version":"`:    "no valid JSON",
		"entries:\n  a:\n  - x: y\noops\n": "no valid YAML",
	}
	for text, want := range tests {
		if _, err := parseIndex(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) || rutter.CodeOf(err) != rutter.CodeInvalid {
			t.Errorf("%q: got %v, want an error with %q", text, err, want)
		}
	}
	broken := rutter.Errorf(rutter.CodeUnavailable, "the line is cut")
	if _, err := parseIndex(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("the reader's error: %v", err)
	}
}

// bigIndex writes an index of about size bytes, as helm writes them.
func bigIndex(size int) []byte {
	var b bytes.Buffer
	b.WriteString("apiVersion: v1\nentries:\n")
	for chart := 0; b.Len() < size; chart++ {
		fmt.Fprintf(&b, "  chart-%d:\n", chart)
		for v := range 100 {
			sum := sumOf(fmt.Appendf(nil, "%d %d", chart, v))
			fmt.Fprintf(&b, "  - annotations:\n      category: Database\n      images: |\n        - image: docker.io/x/y:1.0.0\n          name: y\n        - image: docker.io/x/z:2.0.0\n          name: z\n    apiVersion: v2\n    appVersion: 1.%d.0\n    created: \"2024-05-01T10:00:00.000000000Z\"\n    dependencies:\n    - name: common\n      repository: oci://registry-1.docker.io/xcharts\n      tags:\n      - x-common\n      version: 2.x.x\n    description: A chart with a description that is as long as descriptions usually\n      are, and goes on in the next line.\n    digest: %s\n    home: https://example.com\n    icon: https://example.com/icon.png\n    keywords:\n    - database\n    - sql\n    maintainers:\n    - name: Somebody\n      url: https://example.com\n    name: chart-%d\n    sources:\n    - https://example.com/source\n    urls:\n    - https://charts.example.com/x/chart-%d-1.%d.0.tgz\n    version: 1.%d.0\n", v, sum, chart, chart, v, v)
		}
	}
	b.WriteString("generated: \"2024-05-01T10:00:00Z\"\n")
	return b.Bytes()
}

// heap is what is in use after everything that can be freed was.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestLargeIndexIsKeptSmall(t *testing.T) {
	data := bigIndex(20 << 20)
	before := heap()
	i, err := parseIndex(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	kept := heap() - before
	releases := 0
	for _, r := range i.charts {
		releases += len(r)
	}
	t.Logf("an index of %d MiB, %d charts, %d versions: %d KiB kept (estimated %d KiB)", len(data)>>20, len(i.charts), releases, kept>>10, i.bytes>>10)
	if kept > int64(len(data))/5 {
		t.Errorf("%d bytes kept of an index of %d", kept, len(data))
	}
	if i.bytes < kept/2 || i.bytes > kept*2 {
		t.Errorf("estimated %d bytes, in fact %d", i.bytes, kept)
	}
	runtime.KeepAlive(data)
	runtime.KeepAlive(i)
}

func BenchmarkParseIndex(b *testing.B) {
	data := bigIndex(20 << 20)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		before := heap()
		i, err := parseIndex(bytes.NewReader(data))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(heap()-before)/1024, "KiB-kept")
		runtime.KeepAlive(i)
	}
}

// FuzzIndex holds every index to what must hold for what is kept of it, and
// those that are laid out as helm does to what YAML's own parser finds.
func FuzzIndex(f *testing.F) {
	f.Add([]byte("apiVersion: v1\nentries:\n  a:\n  - version: 1.0.0\n    urls:\n    - a.tgz\n    digest: x\n  - urls: [b]\n    version: 2.0.0\ngenerated: x\n"))
	f.Add([]byte(`{"entries":{"a":[{"version":"1.0.0","urls":["a.tgz"]}]}}`))
	f.Add([]byte("entries: {a: [{version: 1.0.0, urls: [a.tgz]}]}\n"))
	f.Add([]byte("entries:\n  a:\n    - description: |\n        version: 3\n      version: '1.0.0'\n      urls: ['x']\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		i, err := parseIndex(bytes.NewReader(data))
		if err != nil {
			if rutter.CodeOf(err) != rutter.CodeInvalid {
				t.Fatalf("code %s: %v", rutter.CodeOf(err), err)
			}
			return
		}
		for name, releases := range i.charts {
			for _, r := range releases {
				if !nameForm.MatchString(name) || !versionForm.MatchString(r.version) || r.url == "" {
					t.Fatalf("kept %q %q %q", name, r.version, r.url)
				}
			}
		}
	})
}

// FuzzPlainEntry holds the short way to read an entry to what YAML's parser finds.
func FuzzPlainEntry(f *testing.F) {
	for _, text := range []string{
		"version: 1.0.0\nurls:\n- https://h/a.tgz\n- b.tgz\ndigest: " + strings.Repeat("1f", 32) + "\n", "urls:\n  - a.tgz\nversion: 1.0\n",
		"version: 1.e+5\n", "version: 0x1.8p1\n", "version: 2001-01-01\n", "version: .5\n", "version:  1.0.0\n", "version: 1.0.0 # x\n", "urls:\nversion: 1.0\n- a.b\n",
		"version: a: b.c\n", "version: 1.0.0\n   - x.y\n", "digest: " + strings.Repeat("12", 32) + "\n", "urls:\n    - a.b\n  - c.d\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, ok := plainEntry(text)
		if !ok {
			return
		}
		var want listed
		if err := yaml.Unmarshal(text, &want); err != nil {
			return // YAML's parser is stricter about what lies around
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-YAML +short):\n%s", text, diff)
		}
	})
}

// TestEqualsYAML parses indexes in many layouts by lines and as a whole.
func TestEqualsYAML(t *testing.T) {
	type entry struct {
		Name        string           `yaml:"name"`
		Version     string           `yaml:"version"`
		Description string           `yaml:"description"`
		URLs        []string         `yaml:"urls"`
		Deps        []map[string]any `yaml:"dependencies"`
	}
	texts := []string{"", "plain", "a: colon", "# hash", "two\nlines", "version: 9.9.9\nurls:\n- x\n", "- dash", strings.Repeat("long words ", 40), "\"quoted\"", "tab\there", "ends with\n\n\n", "  indented\n   more", "é ü"}
	doc := map[string]any{"apiVersion": "v1", "generated": "now"}
	entries := map[string][]entry{}
	for i, text := range texts {
		name := fmt.Sprintf("chart-%d", i)
		for v := range 3 {
			entries[name] = append(entries[name], entry{
				Name: name, Version: fmt.Sprintf("%d.%d.0", i, v), Description: text, URLs: []string{fmt.Sprintf("u%d-%d", i, v)},
				Deps: []map[string]any{{"name": text, "version": "7.7.7", "urls": []string{text}}},
			})
		}
	}
	doc["entries"] = entries
	for _, indent := range []int{2, 3, 4, 8} {
		var b bytes.Buffer
		e := yaml.NewEncoder(&b)
		e.SetIndent(indent)
		if err := e.Encode(doc); err != nil {
			t.Fatal(err)
		}
		i := mustParse(t, b.String(), false)
		want := map[string][]string{}
		for name, list := range entries {
			for _, x := range list {
				want[name] = append(want[name], x.Version+" "+x.URLs[0])
			}
		}
		if diff := cmp.Diff(want, shown(i)); diff != "" || i.skipped > 0 {
			t.Errorf("indentation %d: skipped %d (-want +got):\n%s", indent, i.skipped, diff)
		}
		if got := slices.Sorted(maps.Keys(i.charts)); len(got) != len(texts) {
			t.Errorf("charts %v", got)
		}
	}
}
