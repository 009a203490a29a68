// Package leadership decides whether this manager may write: the lease of the leader election, the leases of
// other controllers of this API in peer namespaces, and a fence that rejects writes once the lease may have
// expired. It also observes leases in all other namespaces, and makes the condition that shows them on rules.
//
// Every tenant that may write leases in a namespace can create one there, so a lease outside of the peer
// namespaces never keeps the manager from leading, and causes a bounded number of writes.
package leadership

import logf "sigs.k8s.io/controller-runtime/pkg/log"

var log = logf.Log.WithName("leadership")
