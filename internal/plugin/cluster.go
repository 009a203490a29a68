package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/readygate/readygate/internal/plugin/live"
	"github.com/readygate/readygate/internal/plugin/view"
	"github.com/readygate/readygate/internal/version"
)

// source returns the cluster that the flags select.
func (s *session) source() (*live.Source, error) {
	// Without a configured cluster, the client would try localhost:8080.
	raw, err := s.cluster.ToRawKubeConfigLoader().RawConfig()
	if err == nil && len(raw.Clusters) == 0 && *s.cluster.APIServer == "" && os.Getenv("KUBERNETES_SERVICE_HOST") == "" {
		return nil, errors.New("no cluster is configured: set KUBECONFIG, or use --kubeconfig or --server; kubectl config get-contexts lists the contexts")
	}
	config, err := s.cluster.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("loading the cluster's configuration: %w; check --kubeconfig and --context", err)
	}
	config.UserAgent = "kubectl-readiness/" + version.Version
	return live.NewSource(config)
}

// fleet returns the rules and the nodes that match the selector.
func (s *session) fleet(ctx context.Context, source *live.Source, selector labels.Selector) ([]view.Rule, []view.Node, error) {
	rules, err := source.Rules(ctx)
	if err != nil {
		return nil, nil, err
	}
	objects, err := source.Nodes(ctx, client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return nil, nil, err
	}
	book := view.NewBook(rules)
	nodes, tally := make([]view.Node, 0, len(objects)), view.Tally{}
	for _, object := range objects {
		row := book.Node(object, time.Now())
		tally.Add(row)
		nodes = append(nodes, row)
	}
	slices.SortFunc(nodes, view.CompareNodes)
	return book.Rules(tally), nodes, nil
}

// completeNodes completes the names of nodes.
func (s *session) completeNodes(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return s.completeNames(cmd, "Node", "", "")
}

// completeNames completes the names of objects, each with a prefix.
func (s *session) completeNames(cmd *cobra.Command, kind, namespace, prefix string) ([]string, cobra.ShellCompDirective) {
	source, err := s.source()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	names, err := source.Names(cmd.Context(), kind, namespace)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	for i := range names {
		names[i] = prefix + names[i]
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
