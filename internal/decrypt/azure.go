package decrypt

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/getsops/sops/v3/azkv"
	"github.com/getsops/sops/v3/keyservice"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
)

// azureVaults are the domains of Azure's key vaults. A sealed file names the
// vault to ask; no other host is called for it.
var azureVaults = []string{
	".vault.azure.net", ".vault.azure.cn", ".vault.usgovcloudapi.net", ".vault.microsoftazure.de",
	".managedhsm.azure.net", ".managedhsm.azure.cn", ".managedhsm.usgovcloudapi.net",
}

// azureConfig is sops.azure-kv: YAML or JSON, in Flux' names or as 'az ad sp
// create-for-rbac' prints it.
type azureConfig struct {
	TenantID            string `json:"tenantId"`
	ClientID            string `json:"clientId"`
	ClientSecret        string `json:"clientSecret"`
	Certificate         string `json:"clientCertificate"`
	CertificatePassword string `json:"clientCertificatePassword"`
	CertificateChain    bool   `json:"clientCertificateSendChain"`
	AuthorityHost       string `json:"authorityHost"`

	Tenant   string `json:"tenant"`
	AppID    string `json:"appId"`
	Password string `json:"password"`
}

func parseAzure(value []byte, hc httpClient) (azcore.TokenCredential, error) {
	bad := rutter.Errorf(rutter.CodeInvalid, "is no Azure credential: write YAML with tenantId, clientId and clientSecret or clientCertificate, "+
		"or the JSON of 'az ad sp create-for-rbac', or clientId alone for a managed identity")
	var c azureConfig
	if yaml.Unmarshal(value, &c) != nil {
		return nil, bad
	}
	tenant, client, secret := cmp.Or(c.TenantID, c.Tenant), cmp.Or(c.ClientID, c.AppID), cmp.Or(c.ClientSecret, c.Password)
	opts := azcore.ClientOptions{}
	if hc != nil {
		opts.Transport = hc
	}
	if c.AuthorityHost != "" {
		opts.Cloud = cloud.Configuration{ActiveDirectoryAuthorityHost: c.AuthorityHost}
	}
	var token azcore.TokenCredential
	var err error
	switch {
	case client == "":
		return nil, bad
	case tenant != "" && secret != "":
		token, err = azidentity.NewClientSecretCredential(tenant, client, secret, &azidentity.ClientSecretCredentialOptions{ClientOptions: opts})
	case tenant != "" && c.Certificate != "":
		certificates, key, bad := azidentity.ParseCertificates([]byte(c.Certificate), []byte(c.CertificatePassword))
		if bad != nil {
			return nil, rutter.Errorf(rutter.CodeInvalid, "clientCertificate holds no certificate with its key (PEM or PKCS12)")
		}
		token, err = azidentity.NewClientCertificateCredential(tenant, client, certificates, key,
			&azidentity.ClientCertificateCredentialOptions{ClientOptions: opts, SendCertificateChain: c.CertificateChain})
	case tenant == "" && secret == "" && c.Certificate == "":
		token, err = azidentity.NewManagedIdentityCredential(&azidentity.ManagedIdentityCredentialOptions{ClientOptions: opts, ID: azidentity.ClientID(client)})
	default:
		return nil, bad
	}
	if err != nil {
		return nil, bad
	}
	return token, nil
}

// openAzure asks the key vault that the file names with each credential.
func (s *service) openAzure(k *keyservice.AzureKeyVaultKey, sealed []byte) ([]byte, error) {
	err := errNoKey
	for _, set := range s.keys {
		if set.azure == nil {
			continue
		}
		if !azureVault(k.GetVaultUrl()) {
			return nil, rutter.Errorf(rutter.CodeForbidden, "the address is not one of Azure's key vaults")
		}
		key := &azkv.MasterKey{VaultURL: k.GetVaultUrl(), Name: k.GetName(), Version: k.GetVersion(), EncryptedKey: string(sealed)}
		azkv.NewTokenCredential(set.azure).ApplyToMasterKey(key)
		plain, failed := key.DecryptContext(s.ctx)
		if failed == nil {
			return plain, nil
		}
		err = azureError(set, failed)
	}
	return nil, err
}

func azureVault(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "https" && u.User == nil &&
		slices.ContainsFunc(azureVaults, func(domain string) bool { return strings.HasSuffix(strings.ToLower(u.Host), domain) })
}

// azureError keeps the status of Azure's answer and leaves its text.
func azureError(set *keySet, err error) error {
	if _, ok := errors.AsType[*azidentity.AuthenticationFailedError](err); ok {
		return rutter.Errorf(rutter.CodeForbidden, "Azure did not accept the credentials of Secret %s", set.name)
	}
	answer, ok := errors.AsType[*azcore.ResponseError](err)
	switch {
	case !ok:
		return rutter.Errorf(rutter.CodeUnavailable, "Azure did not answer")
	case answer.StatusCode == http.StatusBadRequest:
		return errDamaged
	case answer.StatusCode >= http.StatusInternalServerError || answer.StatusCode == http.StatusTooManyRequests:
		return rutter.Errorf(rutter.CodeUnavailable, "Azure answered %d", answer.StatusCode)
	}
	return rutter.Errorf(rutter.CodeForbidden, "Azure refused the credentials of Secret %s with %d", set.name, answer.StatusCode)
}
