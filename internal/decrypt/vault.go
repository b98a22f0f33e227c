package decrypt

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/getsops/sops/v3/hcvault"
	"github.com/getsops/sops/v3/keyservice"
	"github.com/hashicorp/vault/api"

	"github.com/rutterhq/rutter"
)

// vaultToken is a token and the servers that may see it. A sealed file names
// the server to ask; without the list, whoever can write to a repository could
// name his own and be sent the token.
type vaultToken struct {
	token   string
	servers []string
}

func parseVault(token, servers []byte) (*vaultToken, error) {
	v := &vaultToken{token: strings.TrimSpace(string(token))}
	if v.token == "" {
		return nil, rutter.Errorf(rutter.CodeInvalid, "is empty: put a Vault token here")
	}
	for s := range strings.FieldsSeq(strings.ReplaceAll(string(servers), ",", " ")) {
		origin, ok := originOf(s)
		if !ok {
			return nil, rutter.Errorf(rutter.CodeInvalid, "%s: %q is no address: write it like https://vault.example.com:8200", keyVaultAddress, s)
		}
		v.servers = append(v.servers, origin)
	}
	if len(v.servers) == 0 {
		return nil, rutter.Errorf(rutter.CodeInvalid, "is a Vault token without a server: add the key %s with the addresses that it may be sent to, such as https://vault.example.com:8200", keyVaultAddress)
	}
	return v, nil
}

// originOf returns scheme and host of an address.
func originOf(address string) (string, bool) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" {
		return "", false
	}
	return u.Scheme + "://" + strings.ToLower(u.Host), true
}

// openVault asks the Vault that the file names, when a token is for it.
func (s *service) openVault(k *keyservice.VaultKey, sealed []byte) ([]byte, error) {
	origin, ok := originOf(k.GetVaultAddress())
	err := errNoKey
	for _, set := range s.keys {
		if set.vault == nil || !ok {
			continue
		}
		if !slices.Contains(set.vault.servers, origin) {
			err = rutter.Errorf(rutter.CodeForbidden, "the token of Secret %s is not for this server: its %s names others", set.name, keyVaultAddress)
			continue
		}
		key := &hcvault.MasterKey{VaultAddress: origin, EnginePath: k.GetEnginePath(), KeyName: k.GetKeyName(), EncryptedKey: string(sealed)}
		hcvault.Token(set.vault.token).ApplyToMasterKey(key)
		if s.http != nil {
			client := *s.http // Vault's library changes it
			hcvault.NewHTTPClient(&client).ApplyToMasterKey(key)
		}
		plain, failed := key.DecryptContext(s.ctx)
		if failed == nil {
			return plain, nil
		}
		err = vaultError(set, failed)
	}
	return nil, err
}

// vaultError keeps the status of Vault's answer and leaves its text.
func vaultError(set *keySet, err error) error {
	answer, ok := errors.AsType[*api.ResponseError](err)
	switch {
	case !ok:
		return rutter.Errorf(rutter.CodeUnavailable, "Vault did not answer")
	case answer.StatusCode == http.StatusBadRequest:
		return errDamaged
	case answer.StatusCode >= http.StatusInternalServerError || answer.StatusCode == http.StatusTooManyRequests:
		return rutter.Errorf(rutter.CodeUnavailable, "Vault answered %d", answer.StatusCode)
	}
	return rutter.Errorf(rutter.CodeForbidden, "Vault refused the token of Secret %s with %d", set.name, answer.StatusCode)
}
