package decrypt

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter"
)

// TestTool opens what sops 3.13.3 and gpg have sealed (testdata/tool), and
// compares with what 'sops -d' printed. The keys there are of this test only.
func TestTool(t *testing.T) {
	read := func(name string) []byte {
		t.Helper()
		data, err := os.ReadFile(filepath.Join("testdata", "tool", name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	age := keySecret("age", "", map[string][]byte{"test.agekey": read("keys.agekey")})
	pgp := keySecret("pgp", "", map[string][]byte{"test.asc": read("keys.asc")})
	for _, c := range []struct {
		file, want string
		format     format
		keys       []rutter.DecryptionKey
	}{
		{"secret.yaml", "secret.yaml.want", formatYAML, []rutter.DecryptionKey{age}},
		{"comment.yaml", "comment.yaml.want", formatYAML, []rutter.DecryptionKey{age}},
		{"both.yaml", "secret.yaml.want", formatYAML, []rutter.DecryptionKey{age}},
		{"both.yaml", "secret.yaml.want", formatYAML, []rutter.DecryptionKey{pgp}},
		{"regex.yaml", "secret.yaml.want", formatYAML, []rutter.DecryptionKey{pgp}},
		{"groups.yaml", "secret.yaml.want", formatYAML, []rutter.DecryptionKey{pgp, age}},
		{"app.env", "app.env.want", formatDotenv, []rutter.DecryptionKey{age}},
		{"app.ini", "app.ini.want", formatINI, []rutter.DecryptionKey{age}},
		{"app.json", "app.json.want", formatJSON, []rutter.DecryptionKey{age}},
		{"tls.bin", "tls.bin.want", formatBinary, []rutter.DecryptionKey{age}},
	} {
		d, _ := newTest(t, c.keys...)
		plain, sealed, err := d.Decrypt(t.Context(), "", c.file, read(c.file))
		if err != nil || !sealed {
			t.Errorf("%s: sealed %v, %v", c.file, sealed, err)
			continue
		}
		if diff := cmp.Diff(values(t, c.format, read(c.want)), values(t, c.format, plain)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.file, diff)
		}
		if c.format == formatYAML && strings.Count(string(plain), "#") != strings.Count(string(read(c.want)), "#") || strings.Contains(string(plain), "ENC[") {
			t.Errorf("%s: comments were lost or stay sealed:\n%s", c.file, plain)
		}
	}
	one, _ := newTest(t, age)
	_, _, err := one.Decrypt(t.Context(), "", "groups.yaml", read("groups.yaml"))
	if err == nil || !strings.Contains(err.Error(), "it needs 2 of its 3 key groups") {
		t.Error(err)
	}
}

// FuzzDecrypt: no file brings the process down, whatever becomes of what the
// tool has sealed, and no error quotes what it holds.
func FuzzDecrypt(f *testing.F) {
	f.Add("a.yaml", []byte("a: ENC[AES256_GCM,data:a,iv:b,tag:c,type:str]\nsops:\n  mac: ENC[a]\n  age: [{recipient: a, enc: b}]\n  lastmodified: 2020-01-01T00:00:00Z\n"))
	f.Add("a.json", []byte(`{"a": [{"b": 1}], "sops": {"mac": "x", "lastmodified": "2020-01-01T00:00:00Z", "kms": [{"arn": "x", "context": {"a": null}, "created_at": "2020-01-01T00:00:00Z"}]}}`))
	f.Add("a.ini", []byte("[a]\nb=c\n[sops]\nmac=x\nlastmodified=2020-01-01T00:00:00Z\npgp__list_0__map_fp=x\n"))
	for _, name := range []string{"secret.yaml", "comment.yaml", "app.env", "app.ini", "app.json", "tls.bin"} {
		data, err := os.ReadFile(filepath.Join("testdata", "tool", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(name, data)
	}
	key, err := os.ReadFile(filepath.Join("testdata", "tool", "keys.agekey"))
	if err != nil {
		f.Fatal(err)
	}
	d := New(Options{})
	if err := d.SetKeys([]rutter.DecryptionKey{keySecret("age", "", map[string][]byte{"a.agekey": key})}); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		plain, sealed, err := d.Decrypt(t.Context(), "", name, data)
		if (plain != nil || err != nil) && !sealed || plain != nil && err != nil {
			t.Errorf("%q, sealed %v, %v", plain, sealed, err)
		}
		if err != nil && (strings.Contains(err.Error(), "line one") || strings.Contains(err.Error(), "5432")) {
			t.Errorf("plaintext in %v", err)
		}
	})
}
