package cluster

import (
	"net/http"
	"net/url"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/rutterhq/rutter"
)

// restConfig builds the one configuration by which a member is reached.
func restConfig(info rutter.ClusterInfo, cred rutter.ClusterCredential, allowExec func(string) bool) (*rest.Config, error) {
	if u, err := url.Parse(info.Server); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, rutter.Errorf(rutter.CodeInvalid, "server %q is not a URL of an API server: it must be https://host[:port]", info.Server)
	}
	rc := &rest.Config{
		Host: info.Server, Username: cred.Username, Password: cred.Password, BearerToken: cred.BearerToken, DisableCompression: cred.DisableCompression,
		TLSClientConfig: rest.TLSClientConfig{Insecure: cred.TLS.Insecure, ServerName: cred.TLS.ServerName, CAData: cred.TLS.CAData,
			CertData: cred.TLS.CertData, KeyData: cred.TLS.KeyData},
	}
	if cred.ProxyURL != "" {
		proxy, err := url.Parse(cred.ProxyURL)
		if err != nil || proxy.Host == "" {
			return nil, rutter.Errorf(rutter.CodeInvalid, "config.proxyUrl is not a URL of a proxy (http, https or socks5)")
		}
		rc.Proxy = http.ProxyURL(proxy)
	}
	if e := cred.Exec; e != nil {
		if allowExec == nil || !allowExec(e.Command) {
			return nil, rutter.Errorf(rutter.CodeForbidden, "credential plugin %q is not one that the operator allows", e.Command)
		}
		rc.ExecProvider = &api.ExecConfig{Command: e.Command, Args: e.Args, APIVersion: e.APIVersion, InstallHint: e.InstallHint,
			InteractiveMode: api.NeverExecInteractiveMode}
		for k, v := range e.Env {
			rc.ExecProvider.Env = append(rc.ExecProvider.Env, api.ExecEnvVar{Name: k, Value: v})
		}
	}
	return rc, nil
}
