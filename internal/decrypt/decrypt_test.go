package decrypt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/getsops/sops/v3"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
)

// canary stands for what no error and no log may hold.
const canary = "canary-8f1c2d"

const secretYAML = `apiVersion: v1
kind: Secret
metadata:
  name: db
  namespace: team-a
  labels: {app: db, weight_unencrypted: heavy}
type: Opaque
stringData:
  password: "` + canary + `"
  port: 5432
  "on": "yes"
  list: [a, 2, true, 1.5]
`

func keySecret(name, project string, data map[string][]byte) rutter.DecryptionKey {
	return rutter.DecryptionKey{Name: "argocd/" + name, Project: project, Data: data}
}

// newTest returns a Decrypter and what it logs.
func newTest(t *testing.T, keys ...rutter.DecryptionKey) (*Decrypter, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	d := New(Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Timeout: 5 * time.Second})
	if err := d.SetKeys(keys); err != nil {
		t.Fatal(err)
	}
	return d, &log
}

// values reads structured text for comparing.
func values(t *testing.T, f format, text []byte) any {
	t.Helper()
	if f != formatYAML && f != formatJSON {
		return string(text)
	}
	var docs []any
	for doc := range strings.SplitSeq(string(text), "\n---\n") {
		var v any
		if err := yaml.Unmarshal([]byte(doc), &v); err != nil {
			t.Fatalf("%v\n%s", err, doc)
		}
		docs = append(docs, v)
	}
	return docs
}

func TestDecrypt(t *testing.T) {
	private, recipient := ageKey(t)
	_, stranger := ageKey(t)
	pgpPrivate, pgpEntity := pgpKey(t, "")
	both := []rutter.DecryptionKey{keySecret("age", "", map[string][]byte{"a.agekey": private}), keySecret("pgp", "", map[string][]byte{"p.asc": pgpPrivate})}
	group := func(ks ...string) sops.KeyGroup {
		var g sops.KeyGroup
		for _, k := range ks {
			g = append(g, forAge(k))
		}
		return g
	}
	for _, c := range []struct {
		name, file, plain string
		format            format
		meta              sops.Metadata
		groups            []sops.KeyGroup
	}{
		{name: "YAML", file: "deploy/db.yaml", format: formatYAML, plain: secretYAML, groups: []sops.KeyGroup{group(recipient)}},
		{name: "YAML of several documents", file: "db.yml", format: formatYAML, plain: secretYAML + "---\na: 1\n---\nb: {c: " + canary + "}\n", groups: []sops.KeyGroup{group(recipient)}},
		{name: "JSON", file: "db.json", format: formatJSON, plain: `{"z": "` + canary + `", "a": [1, 2.5, null, true, {"b": "<&>"}], "big": 9007199254740993, "empty": ""}`, groups: []sops.KeyGroup{group(recipient)}},
		{name: "dotenv", file: "app/.env", format: formatDotenv, plain: "# comment\nPASSWORD=" + canary + "\nMULTI=a\\nb\nEMPTY=\n", groups: []sops.KeyGroup{group(recipient)}},
		{name: "INI", file: "db.ini", format: formatINI, plain: "[main]\npassword = " + canary + "\nport     = 1\n", groups: []sops.KeyGroup{group(recipient)}},
		{name: "binary", file: "tls.key", format: formatBinary, plain: canary + "\x00 not text", groups: []sops.KeyGroup{group(recipient)}},
		{name: "PGP", file: "db.yaml", format: formatYAML, plain: secretYAML, groups: []sops.KeyGroup{{forPGP(pgpEntity)}}},
		{name: "one of several recipients", file: "db.yaml", format: formatYAML, plain: secretYAML, groups: []sops.KeyGroup{{forAge(stranger), forPGP(pgpEntity), forAge(recipient)}}},
		{
			name: "two of three key groups", file: "db.yaml", format: formatYAML, plain: secretYAML, meta: sops.Metadata{ShamirThreshold: 2},
			groups: []sops.KeyGroup{group(recipient), group(stranger), {forPGP(pgpEntity)}},
		},
		{
			name: "encrypted_regex", file: "db.yaml", format: formatYAML, plain: secretYAML, meta: sops.Metadata{EncryptedRegex: "^(data|stringData)$"},
			groups: []sops.KeyGroup{group(recipient)},
		},
		{
			name: "unencrypted_suffix", file: "db.yaml", format: formatYAML, plain: secretYAML, meta: sops.Metadata{UnencryptedSuffix: "_unencrypted"},
			groups: []sops.KeyGroup{group(recipient)},
		},
		{
			name: "mac_only_encrypted", file: "db.yaml", format: formatYAML, plain: secretYAML,
			meta: sops.Metadata{EncryptedRegex: "^stringData$", MACOnlyEncrypted: true}, groups: []sops.KeyGroup{group(recipient)},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, log := newTest(t, both...)
			file := seal(t, c.format, c.plain, c.meta, c.groups...)
			if bytes.Contains(file, []byte(canary)) {
				t.Fatal("the test did not seal")
			}
			plain, sealed, err := d.Decrypt(t.Context(), "web", c.file, file)
			if err != nil || !sealed {
				t.Fatalf("sealed %v, error %v\n%s", sealed, err, file)
			}
			if diff := cmp.Diff(values(t, c.format, []byte(c.plain)), values(t, c.format, plain)); diff != "" {
				t.Errorf("plaintext (-want +got):\n%s", diff)
			}
			if strings.Contains(log.String(), canary) {
				t.Error("the log holds plaintext")
			}
			// Without the keys: an error that says for whom, and holds no plaintext.
			locked, _ := newTest(t)
			if _, _, err = locked.Decrypt(t.Context(), "web", c.file, file); rutter.CodeOf(err) != rutter.CodeForbidden {
				t.Errorf("without keys: %v", err)
			}
			for _, want := range []string{c.file, "sealed for", "add a Secret labelled argocd.argoproj.io/secret-type: sops-keys", "project: web"} {
				if !strings.Contains(fmt.Sprint(err), want) {
					t.Errorf("error lacks %q: %v", want, err)
				}
			}
		})
	}
}

func TestNotSealed(t *testing.T) {
	d, _ := newTest(t)
	for name, data := range map[string]string{
		"plain.yaml":     secretYAML,
		"chart.yaml":     "sops: {enabled: true, version: 3.7.0}\n",
		"mentions.yaml":  "# sealed with sops\na: 1\n",
		"template.yaml":  "{{- if .Values.sops }}\nsops:\n{{ end }}\n",
		"list.yaml":      "- sops: 1\n- b\n",
		"package.json":   `{"sops": "3.7"}`,
		"array.json":     `["sops"]`,
		".env":           "TOOL=sops\n",
		"setup.ini":      "[tool]\nname = sops\n",
		"run.sh":         "sops -d x\n",
		"empty.yaml":     "",
		"text.json":      "sops",
		"app/config.bin": `{"data": "x", "sops": {}}`,
	} {
		plain, sealed, err := d.Decrypt(t.Context(), "", name, []byte(data))
		if plain != nil || sealed || err != nil {
			t.Errorf("%s: %q, sealed %v, %v", name, plain, sealed, err)
		}
	}
}

// TestDamaged: whatever is done to a sealed file, the answer is an error that
// names it and quotes nothing.
func TestDamaged(t *testing.T) {
	private, recipient := ageKey(t)
	d, log := newTest(t, keySecret("age", "", map[string][]byte{"a.agekey": private}))
	file := string(seal(t, formatYAML, secretYAML, sops.Metadata{EncryptedRegex: "^(data|stringData)$"}, sops.KeyGroup{forAge(recipient)}))
	replaceLine := func(marker string, f func(string) string) string {
		lines := strings.Split(file, "\n")
		for i, l := range lines {
			if strings.Contains(l, marker) {
				lines[i] = f(l)
				return strings.Join(lines, "\n")
			}
		}
		t.Fatalf("no line with %q in\n%s", marker, file)
		return ""
	}
	for _, c := range []struct{ name, data, want string }{
		{"a value outside the sealed part changed", strings.Replace(file, "name: db", "name: dc", 1), "its MAC (sops.mac) does not match"},
		{"the MAC changed", replaceLine("mac: ENC", func(l string) string { return strings.Replace(l, "data:", "data:AAAA", 1) }), "its MAC (sops.mac) cannot be opened"},
		{"the MAC removed", replaceLine("mac: ENC", func(string) string { return "    mac: ''" }), "no MAC"},
		{"the type of a value changed", replaceLine("password:", func(l string) string { return strings.Replace(l, "type:str", "type:int", 1) }), "stringData:password"},
		{"the type of a value is bytes, which the library cannot take", replaceLine("password:", func(l string) string { return strings.Replace(l, "type:str", "type:bytes", 1) }), "malformed"},
		{"a value moved", replaceLine("password:", func(l string) string { return strings.Replace(l, "password:", "passwort:", 1) }), "stringData:passwort"},
		{"a plain value added to the sealed part", replaceLine("password:", func(l string) string { return l + "\n    extra: " + canary }), "stringData:extra"},
		{"a number added to the sealed part", replaceLine("password:", func(l string) string { return l + "\n    extra: 5" }), "SOPS cannot have written"},
		{"an alias", replaceLine("password:", func(l string) string { return l + "\n    x: &x [a]\n    y: *x" }), "YAML alias"},
		{"an alias within itself", file + "---\na: &a [*a]\n", "YAML alias"},
		{"the sealed data key cut", replaceLine("-----END AGE", func(string) string { return "" }), "the sealed data key is damaged): run 'sops updatekeys'"},
		{"no date", replaceLine("lastmodified:", func(string) string { return "" }), "its metadata (sops) cannot be read"},
		{"a document that is a list", file + "---\n- a\n", "no mapping"},
		{"broken YAML", file + "\n\t{", "no valid YAML"},
	} {
		plain, sealed, err := d.Decrypt(t.Context(), "", "deploy/db.yaml", []byte(c.data))
		if err == nil || !sealed || plain != nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "deploy/db.yaml:") {
			t.Errorf("%s: %q, sealed %v, want %q, got %v", c.name, plain, sealed, c.want, err)
		}
		if strings.Contains(fmt.Sprintf("%v %+v", err, err)+log.String(), canary) {
			t.Errorf("%s: plaintext in the error or log: %v", c.name, err)
		}
	}
}

func TestKeysChange(t *testing.T) {
	oldKey, oldRecipient := ageKey(t)
	newKey, newRecipient := ageKey(t)
	oldFile := seal(t, formatYAML, secretYAML, sops.Metadata{}, sops.KeyGroup{forAge(oldRecipient)})
	newFile := seal(t, formatYAML, secretYAML, sops.Metadata{}, sops.KeyGroup{forAge(newRecipient)})
	d, _ := newTest(t, keySecret("age", "", map[string][]byte{"a.agekey": oldKey}))
	opens := func(project string, file []byte) bool {
		_, sealed, err := d.Decrypt(t.Context(), project, "db.yaml", file)
		if !sealed {
			t.Fatal("not sealed")
		}
		return err == nil
	}
	first := d.Generation()
	if !opens("", oldFile) || opens("", newFile) {
		t.Error("the first key")
	}
	set := func(keys ...rutter.DecryptionKey) {
		if err := d.SetKeys(keys); err != nil {
			t.Fatal(err)
		}
	}
	set(keySecret("age", "", map[string][]byte{"a.agekey": newKey}))
	second := d.Generation()
	if opens("", oldFile) || !opens("", newFile) || first == second {
		t.Error("after the key was replaced")
	}
	set(keySecret("age", "web", map[string][]byte{"a.agekey": newKey}))
	third := d.Generation()
	if opens("", newFile) || opens("db", newFile) || !opens("web", newFile) || third == second {
		t.Error("a key with a project serves that project only")
	}
	set(keySecret("other", "", map[string][]byte{"b.agekey": oldKey}), keySecret("age", "web", map[string][]byte{"a.agekey": newKey}))
	fourth := d.Generation()
	set(keySecret("age", "web", map[string][]byte{"a.agekey": newKey}), keySecret("renamed", "", map[string][]byte{"b.agekey": oldKey}))
	if d.Generation() != fourth || fourth == third {
		t.Error("the generation is that of the keys, not of their order or names")
	}
}

func TestSetKeysErrors(t *testing.T) {
	private, recipient := ageKey(t)
	locked, entity := pgpKey(t, canary)
	public := armored(t, "PGP PUBLIC KEY BLOCK", func(w *bytes.Buffer) error { return entity.Serialize(w) })
	d := New(Options{})
	err := d.SetKeys([]rutter.DecryptionKey{
		keySecret("good", "", map[string][]byte{"a.agekey": private, "project": []byte("")}),
		keySecret("bad", "", map[string][]byte{
			"README": []byte(canary), "broken.agekey": []byte("AGE-SECRET-KEY-1" + canary), "plugin.agekey": []byte("AGE-PLUGIN-YUBIKEY-" + canary),
			"locked.asc": locked, "public.asc": public, "text.asc": []byte(canary), "empty.agekey": []byte("# " + canary),
			"sops.vault-token": []byte(canary), "sops.aws-kms": []byte("aws_secret_access_key: " + canary),
			"sops.gcp-kms":  []byte(`{"type": "external_account", "client_email": "` + canary + `", "private_key": "x"}`),
			"sops.azure-kv": []byte("tenantId: a\nclientId: b\npassword2: " + canary),
		}),
		keySecret("none", "", nil),
	})
	got := strings.Split(fmt.Sprint(err), "\n")
	want := []string{
		`Secret argocd/bad, key "README": is no form of a key`,
		`Secret argocd/bad, key "broken.agekey": line 1 is no age identity`,
		`Secret argocd/bad, key "empty.agekey": holds no age identity`,
		`Secret argocd/bad, key "locked.asc": block 1 is protected by a passphrase`,
		`Secret argocd/bad, key "plugin.agekey": line 1 is the identity of an age plugin`,
		`Secret argocd/bad, key "public.asc": block 1 is a public key`,
		`Secret argocd/bad, key "sops.aws-kms": is no AWS credential`,
		`Secret argocd/bad, key "sops.azure-kv": is no Azure credential`,
		`Secret argocd/bad, key "sops.gcp-kms": is no key of a Google service account`,
		`Secret argocd/bad, key "sops.vault-token": is a Vault token without a server`,
		`Secret argocd/bad, key "text.asc": holds no armored PGP key`,
		`Secret argocd/none holds no keys`,
	}
	if len(got) != len(want) {
		t.Fatalf("got %d problems, want %d:\n%v", len(got), len(want), err)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("got %q, want %q...", got[i], want[i])
		}
		if strings.Contains(got[i], canary) {
			t.Errorf("key material in %q", got[i])
		}
	}
	file := seal(t, formatYAML, secretYAML, sops.Metadata{}, sops.KeyGroup{forAge(recipient)})
	if _, _, err := d.Decrypt(t.Context(), "", "a.yaml", file); err != nil {
		t.Errorf("the good key does not serve: %v", err)
	}
}

// TestNothingElseIsAsked: the keys lie everywhere the sops tool would look, and
// are not found.
func TestNothingElseIsAsked(t *testing.T) {
	private, recipient := ageKey(t)
	_, entity := pgpKey(t, "")
	home := t.TempDir()
	ran := filepath.Join(home, "ran")
	program := filepath.Join(home, "gpg")
	write := func(name string, data []byte, mode os.FileMode) {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, data, mode); err != nil {
			t.Fatal(err)
		}
	}
	write(program, []byte("#!/bin/sh\ntouch "+ran+"\ncat "+home+"/keys.txt\n"), 0o700)
	write(filepath.Join(home, "age-plugin-x"), []byte("#!/bin/sh\ntouch "+ran+"\n"), 0o700)
	write(filepath.Join(home, "keys.txt"), private, 0o600)
	write(filepath.Join(home, "sops/age/keys.txt"), private, 0o600)
	write(filepath.Join(home, ".config/sops/age/keys.txt"), private, 0o600)
	for k, v := range map[string]string{
		"HOME": home, "XDG_CONFIG_HOME": home, "PATH": home + ":" + os.Getenv("PATH"), "GNUPGHOME": home, "SOPS_GPG_EXEC": program,
		"SOPS_AGE_KEY": string(private), "SOPS_AGE_KEY_FILE": filepath.Join(home, "keys.txt"), "SOPS_AGE_KEY_CMD": program, "SOPS_AGE_SSH_PRIVATE_KEY_CMD": program,
	} {
		t.Setenv(k, v)
	}
	other, _ := ageKey(t)
	otherPGP, _ := pgpKey(t, "")
	d, _ := newTest(t, keySecret("other", "", map[string][]byte{"a.agekey": other, "a.asc": otherPGP}))
	for name, k := range map[string]sops.KeyGroup{"age": {forAge(recipient)}, "pgp": {forPGP(entity)}} {
		file := seal(t, formatYAML, secretYAML, sops.Metadata{}, k)
		if _, sealed, err := d.Decrypt(t.Context(), "", "db.yaml", file); rutter.CodeOf(err) != rutter.CodeForbidden || !sealed {
			t.Errorf("%s: sealed %v, %v", name, sealed, err)
		}
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a program was run")
	}
}

func TestDecryptObject(t *testing.T) {
	private, recipient := ageKey(t)
	d, _ := newTest(t, keySecret("age", "web", map[string][]byte{"a.agekey": private}))
	object := func(text []byte) map[string]any {
		t.Helper()
		asJSON, err := yaml.YAMLToJSON(text)
		if err != nil {
			t.Fatal(err)
		}
		var obj map[string]any
		if err := json.Unmarshal(asJSON, &obj); err != nil {
			t.Fatal(err)
		}
		return obj
	}
	meta := sops.Metadata{EncryptedRegex: "^(data|stringData)$"}
	file := seal(t, formatYAML, secretYAML, meta, sops.KeyGroup{forAge(recipient)})
	sealedObject := object(file)
	// A build adds labels and a namespace: the MAC cannot match any more.
	sealedObject["metadata"].(map[string]any)["namespace"] = "elsewhere"
	sealedObject["immutable"], sealedObject["count"] = true, int64(9007199254740993)
	before := fmt.Sprint(sealedObject)
	want := object([]byte(secretYAML))
	want["metadata"].(map[string]any)["namespace"] = "elsewhere"
	want["immutable"], want["count"] = true, int64(9007199254740993)
	want["stringData"].(map[string]any)["port"] = int64(5432)
	want["stringData"].(map[string]any)["list"] = []any{"a", int64(2), true, 1.5}

	plain, sealed, err := d.DecryptObject(t.Context(), "web", sealedObject)
	if err != nil || !sealed {
		t.Fatal(sealed, err)
	}
	if diff := cmp.Diff(want, plain); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if fmt.Sprint(sealedObject) != before || !rutter.Sealed(sealedObject) || rutter.Sealed(plain) {
		t.Error("the object was changed, or Sealed is wrong")
	}
	if _, sealed, err = d.DecryptObject(t.Context(), "db", sealedObject); !sealed || rutter.CodeOf(err) != rutter.CodeForbidden || !strings.Contains(err.Error(), "Secret elsewhere/db is sealed") {
		t.Error("another project:", sealed, err)
	}
	if _, sealed, err = d.DecryptObject(t.Context(), "web", want); sealed || err != nil {
		t.Error("a plain object:", sealed, err)
	}
	sealedObject["metadata"].(map[string]any)["annotations"] = map[string]any{"kustomize.toolkit.fluxcd.io/decrypt": "Disabled"}
	if _, sealed, err = d.DecryptObject(t.Context(), "web", sealedObject); sealed || err != nil {
		t.Error("opted out:", sealed, err)
	}
}

// TestDecryptObjectData: what a secretGenerator makes of sealed files.
func TestDecryptObjectData(t *testing.T) {
	private, recipient := ageKey(t)
	d, _ := newTest(t, keySecret("age", "", map[string][]byte{"a.agekey": private}))
	data := map[string]any{"plain": "cGxhaW4="}
	for name, c := range map[string]struct {
		format format
		plain  string
	}{
		"app.env": {formatDotenv, "A=" + canary + "\n"}, ".dockerconfigjson": {formatJSON, "{\n  \"auths\": \"" + canary + "\"\n}\n"},
		"tls.key": {formatBinary, canary}, "app.ini": {formatINI, "[a]\nb = " + canary + "\n"},
	} {
		data[name] = seal(t, c.format, c.plain, sops.Metadata{}, sops.KeyGroup{forAge(recipient)})
	}
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "gen"}, "data": data})
	if err != nil {
		t.Fatal(err)
	}
	var obj map[string]any
	if err := json.Unmarshal(text, &obj); err != nil {
		t.Fatal(err)
	}
	plain, sealed, err := d.DecryptObject(t.Context(), "", obj)
	if err != nil || !sealed || !rutter.Sealed(obj) || rutter.Sealed(plain) {
		t.Fatal(sealed, err)
	}
	for name, v := range plain["data"].(map[string]any) {
		var value []byte
		if err := json.Unmarshal([]byte(`"`+v.(string)+`"`), &value); err != nil {
			t.Fatal(err)
		}
		if want := map[string]string{"plain": "plain"}[name]; want != "" && string(value) != want || want == "" && !bytes.Contains(value, []byte(canary)) {
			t.Errorf("%s: %s", name, value)
		}
	}
	locked, _ := newTest(t)
	_, _, err = locked.DecryptObject(t.Context(), "", obj)
	if err == nil || !strings.Contains(err.Error(), "Secret gen, data..dockerconfigjson, is sealed with SOPS") {
		t.Error(err)
	}
}
