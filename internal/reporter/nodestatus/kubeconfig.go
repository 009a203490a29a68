package nodestatus

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// kubeconfig is the part of a kubeconfig that a reporter can use.
type kubeconfig struct {
	CurrentContext string `json:"current-context"`
	Contexts       []struct {
		Name    string `json:"name"`
		Context struct {
			Cluster string `json:"cluster"`
			User    string `json:"user"`
		} `json:"context"`
	} `json:"contexts"`
	Clusters []struct {
		Name    string  `json:"name"`
		Cluster cluster `json:"cluster"`
	} `json:"clusters"`
	Users []struct {
		Name string `json:"name"`
		User user   `json:"user"`
	} `json:"users"`
}

type cluster struct {
	Server     string `json:"server"`
	CAFile     string `json:"certificate-authority"`
	CAData     []byte `json:"certificate-authority-data"`
	ServerName string `json:"tls-server-name"`
	SkipVerify bool   `json:"insecure-skip-tls-verify"`
}

type user struct {
	Token     string `json:"token"`
	TokenFile string `json:"tokenFile"`
	CertFile  string `json:"client-certificate"`
	CertData  []byte `json:"client-certificate-data"`
	KeyFile   string `json:"client-key"`
	KeyData   []byte `json:"client-key-data"`
	Exec      any    `json:"exec"`
	Provider  any    `json:"auth-provider"`
}

// FromKubeconfig is the connection of the current context of a kubeconfig: for a reporter
// that does not run in a pod.
func FromKubeconfig(path string) (Connection, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Connection{}, err
	}
	var config kubeconfig
	if err := yaml.Unmarshal(data, &config); err != nil {
		return Connection{}, fmt.Errorf("%s is not a kubeconfig: %w", path, err)
	}
	connection, err := config.connection(filepath.Dir(path))
	if err != nil {
		return Connection{}, fmt.Errorf("%s: %w", path, err)
	}
	return connection, nil
}

func (k kubeconfig) connection(dir string) (Connection, error) {
	for _, context := range k.Contexts {
		if context.Name != k.CurrentContext {
			continue
		}
		to, found := k.cluster(context.Context.Cluster)
		if !found || to.Server == "" {
			return Connection{}, fmt.Errorf("the context %q names the cluster %q, which has no server", context.Name, context.Context.Cluster)
		}
		as, found := k.user(context.Context.User)
		if !found {
			return Connection{}, fmt.Errorf("the context %q names the user %q, which is not there", context.Name, context.Context.User)
		}
		if server, err := url.Parse(to.Server); err != nil || server.Host == "" || server.Scheme != "https" && server.Scheme != "http" {
			return Connection{}, fmt.Errorf("the server of cluster %q is %q, must be a URL, e.g. https://10.0.0.1:6443", context.Context.Cluster, to.Server)
		}
		if as.Exec != nil || as.Provider != nil {
			return Connection{}, errors.New("the user logs in by a command, which a reporter cannot: use a token, tokenFile or client-certificate")
		}
		return connect(dir, to, as), nil
	}
	return Connection{}, fmt.Errorf("current-context is %q, which is not there", k.CurrentContext)
}

func (k kubeconfig) cluster(name string) (cluster, bool) {
	for _, one := range k.Clusters {
		if one.Name == name {
			return one.Cluster, true
		}
	}
	return cluster{}, false
}

func (k kubeconfig) user(name string) (user, bool) {
	for _, one := range k.Users {
		if one.Name == name {
			return one.User, true
		}
	}
	return user{}, false
}

// connect reads paths as kubectl does: relative ones begin at the kubeconfig.
func connect(dir string, to cluster, as user) Connection {
	from := func(text []byte, path string) source {
		if path != "" && !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if len(text) > 0 {
			path = ""
		}
		return source{text: text, file: path}
	}
	token := from([]byte(as.Token), as.TokenFile)
	if as.TokenFile != "" {
		token = from(nil, as.TokenFile) // it wins, so that it can be rotated
	}
	return Connection{
		server:     strings.TrimRight(to.Server, "/"),
		serverName: to.ServerName,
		skipVerify: to.SkipVerify,
		ca:         from(to.CAData, to.CAFile),
		bearer:     token,
		cert:       from(as.CertData, as.CertFile),
		key:        from(as.KeyData, as.KeyFile),
	}
}
