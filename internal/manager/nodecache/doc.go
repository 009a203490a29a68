// Package nodecache holds the nodes that the informer keeps, and reduces them to what decisions need: before
// decoding, after decoding, and when they are listed.
//
// A node is about 15 KB on the wire, most of it images, managed fields and annotations of other components, and is
// sent again with every heartbeat. Decoding these parts only to discard them is most of the cost of a quiet
// cluster, so they are cut out of the bytes before decoding.
package nodecache
