package argo

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/rutterhq/rutter"
)

// clusterConfig is the JSON under the key config (reference 1.12). Data stay
// texts here, so that a mistake in one can be named.
type clusterConfig struct {
	Username           string          `json:"username"`
	Password           string          `json:"password"`
	BearerToken        string          `json:"bearerToken"`
	TLSClientConfig    clusterTLS      `json:"tlsClientConfig"`
	AWSAuthConfig      json.RawMessage `json:"awsAuthConfig"`
	ExecProviderConfig *clusterExec    `json:"execProviderConfig"`
	ProxyURL           string          `json:"proxyUrl"`
	DisableCompression bool            `json:"disableCompression"`
}

type clusterTLS struct {
	Insecure   bool   `json:"insecure"`
	ServerName string `json:"serverName"`
	CAData     string `json:"caData"`
	CertData   string `json:"certData"`
	KeyData    string `json:"keyData"`
}

type clusterExec struct {
	Command            string            `json:"command"`
	Args               []string          `json:"args"`
	Env                map[string]string `json:"env"`
	APIVersion         string            `json:"apiVersion"`
	InstallHint        string            `json:"installHint"`
	ProvideClusterInfo bool              `json:"provideClusterInfo"`
	Config             json.RawMessage   `json:"config"`
}

func clusterCredential(s *corev1.Secret, allowExec func(command string) bool) (rutter.ClusterCredential, error) {
	var cfg clusterConfig
	var cred rutter.ClusterCredential
	raw := []byte(data(s, "config"))
	if len(strings.TrimSpace(string(raw))) == 0 {
		return cred, nil
	}
	if err := json.Unmarshal(raw, &cfg); err != nil {
		return cred, secretError(s, rutter.CodeInvalid, "key config: %s", jsonProblem(err))
	}
	cred = rutter.ClusterCredential{Username: cfg.Username, Password: cfg.Password, BearerToken: cfg.BearerToken,
		ProxyURL: cfg.ProxyURL, DisableCompression: cfg.DisableCompression, Unsupported: unknownConfig(raw)}
	tls, problem := cfg.TLSClientConfig.decode()
	if problem == "" {
		problem = cfg.contradiction()
	}
	if problem != "" {
		return cred, secretError(s, rutter.CodeInvalid, "key config: %s", problem)
	}
	cred.TLS = tls
	if len(cfg.AWSAuthConfig) > 0 && string(cfg.AWSAuthConfig) != "null" {
		cred.Unsupported = append(cred.Unsupported, "config.awsAuthConfig")
		return cred, secretError(s, rutter.CodeUnsupported, "key config: field awsAuthConfig is not acted on yet: use bearerToken, a client certificate or an execProviderConfig that the operator allows")
	}
	return cred, cfg.ExecProviderConfig.allow(s, &cred, allowExec)
}

// allow takes an exec provider over if the operator listed its command.
func (e *clusterExec) allow(s *corev1.Secret, cred *rutter.ClusterCredential, allowExec func(command string) bool) error {
	switch {
	case e == nil:
		return nil
	case e.Command == "":
		return secretError(s, rutter.CodeInvalid, "key config: field execProviderConfig.command is missing or empty")
	case allowExec == nil || !allowExec(e.Command):
		return secretError(s, rutter.CodeForbidden, "key config: field execProviderConfig.command is %q, which the operator has not allowed", e.Command)
	}
	if e.ProvideClusterInfo {
		cred.Unsupported = append(cred.Unsupported, "config.execProviderConfig.provideClusterInfo")
	}
	if len(e.Config) > 0 && string(e.Config) != "null" {
		cred.Unsupported = append(cred.Unsupported, "config.execProviderConfig.config")
	}
	cred.Exec = &rutter.ExecProvider{Command: e.Command, Args: e.Args, Env: e.Env, APIVersion: e.APIVersion, InstallHint: e.InstallHint}
	return nil
}

// decode reads base64 PEM; problem names the field that is not.
func (c clusterTLS) decode() (out rutter.ClusterTLS, problem string) {
	out = rutter.ClusterTLS{Insecure: c.Insecure, ServerName: c.ServerName}
	for _, f := range []struct {
		name, text string
		to         *[]byte
	}{{"caData", c.CAData, &out.CAData}, {"certData", c.CertData, &out.CertData}, {"keyData", c.KeyData, &out.KeyData}} {
		if f.text == "" {
			continue
		}
		b, err := base64.StdEncoding.DecodeString(f.text)
		if err != nil {
			return out, "field tlsClientConfig." + f.name + " is not base64"
		}
		if block, _ := pem.Decode(b); block == nil {
			return out, "field tlsClientConfig." + f.name + " is not PEM in base64"
		}
		*f.to = b
	}
	return out, ""
}

// contradiction names settings that cannot be used together.
func (c clusterConfig) contradiction() string {
	tls := c.TLSClientConfig
	switch {
	case tls.Insecure && tls.CAData != "":
		return "fields tlsClientConfig.insecure and tlsClientConfig.caData exclude each other"
	case (tls.CertData == "") != (tls.KeyData == ""):
		return "fields tlsClientConfig.certData and tlsClientConfig.keyData must be set together"
	case c.BearerToken != "" && c.Username != "":
		return "fields bearerToken and username exclude each other"
	case c.ProxyURL == "":
		return ""
	}
	u, err := url.Parse(c.ProxyURL)
	if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "socks5"}, u.Scheme) {
		return "field proxyUrl must be a URL with http, https or socks5"
	}
	return ""
}

// unknownConfig names the fields of a config that no Argo CD knows either.
func unknownConfig(raw []byte) []string {
	var all map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return nil
	}
	out := unknownFields("config.", all, reflect.TypeFor[clusterConfig]())
	var nested map[string]json.RawMessage
	if json.Unmarshal(all["tlsClientConfig"], &nested) == nil {
		out = append(out, unknownFields("config.tlsClientConfig.", nested, reflect.TypeFor[clusterTLS]())...)
	}
	return out
}

func unknownFields(prefix string, in map[string]json.RawMessage, known reflect.Type) []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(in)) {
		found := false
		for field := range known.Fields() {
			found = found || strings.EqualFold(field.Tag.Get("json"), k)
		}
		if !found {
			out = append(out, prefix+k)
		}
	}
	return out
}

// jsonProblem says what is wrong with a JSON text without quoting the text,
// which holds credentials.
func jsonProblem(err error) string {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Sprintf("not valid JSON at character %d", syntax.Offset)
	case errors.As(err, &kind) && kind.Field != "":
		return fmt.Sprintf("field %s must be %s", kind.Field, jsonKind(kind.Type))
	case errors.As(err, &kind):
		return "must be a JSON object"
	default:
		return "not valid JSON"
	}
}

// jsonKind names a Go type as a writer of JSON knows it.
func jsonKind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct, reflect.Pointer:
		return "an object"
	default:
		return "a number"
	}
}
