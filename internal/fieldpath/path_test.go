package fieldpath_test

import (
	"testing"

	"github.com/rutterhq/rutter/internal/fieldpath"
)

func TestPaths(t *testing.T) {
	for _, c := range []struct{ path, pointer, jq string }{
		{".data.value", "/data/value", `.["data"]["value"]`},
		{`.data["a/b~c.d"]`, "/data/a~1b~0c.d", `.["data"]["a/b~c.d"]`},
		{`.spec.containers[name="web"].image`, "", `.["spec"]["containers"][] | select(.["name"] == "web") | .["image"]`},
		{`.spec.ports[port=80,protocol="TCP"]`, "", `.["spec"]["ports"][] | select(.["port"] == 80 and .["protocol"] == "TCP")`},
		{`.metadata.finalizers[="a]b"]`, "", `.["metadata"]["finalizers"][] | select(. == "a]b")`},
		{`.spec.args[2]`, "", `.["spec"]["args"][2]`},
	} {
		path, ok := fieldpath.Parse(c.path)
		if !ok {
			t.Errorf("%s: is not read", c.path)
			continue
		}
		if p, _ := fieldpath.Pointer(path); p != c.pointer {
			t.Errorf("%s: pointer %q, want %q", c.path, p, c.pointer)
		}
		if got := fieldpath.JQ(path); got != c.jq {
			t.Errorf("%s: jq %s, want %s", c.path, got, c.jq)
		}
	}
	for _, bad := range []string{"", ".", "and 12 more", ".a[", ".a[name=", `.a["b`, ".a[=1", ".a[1x]", ".a]"} {
		if path, ok := fieldpath.Parse(bad); ok {
			t.Errorf("%q: read as %v", bad, path)
		}
	}
}

func FuzzParsePath(f *testing.F) {
	f.Add(`.spec.ports[port=80,protocol="TCP"]["a b"][=1][2]`)
	f.Fuzz(func(t *testing.T, text string) {
		if path, ok := fieldpath.Parse(text); ok && fieldpath.JQ(path) == "" {
			t.Errorf("%q: is read and has no expression", text)
		}
	})
}
