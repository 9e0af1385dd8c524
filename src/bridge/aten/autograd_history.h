// Autograd histories of the caller's tensors which a call writes in place.
//
// During capture, autograd records these writes for real, in the history of the caller's own tensor. At the end of the
// graph segment the tensor gets its previous history back. Each call of the compiled segment then repeats autograd's
// action after a write: the tensor, and the base of a view, become results of the call's node.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "bridge/aten/node_ptr.h"

namespace cresset::bridge {

// Autograd's state of a tensor before a call.
class History {
 public:
  // Returns nullptr for a leaf which is no view: it has no history.
  static std::shared_ptr<const History> of(const at::Tensor& tensor);

  // The edge to which gradients of the tensor's earlier value flow; invalid for a leaf.
  const torch::autograd::Edge& edge() const { return edge_; }
  // Whether the gradient is retained (t.retain_grad()).
  bool is_retained() const { return is_retained_; }
  // Gives the history back to the tensor. nullptr: the history of a leaf.
  static void restore(const std::shared_ptr<const History>& history, const at::Tensor& tensor);

 private:
  torch::autograd::Edge edge_;
  torch::autograd::Edge of_base_;  // for a view: the base's edge
  bool is_retained_ = false;
};

// Whether the tensor is a view whose base autograd knows.
bool is_recorded_view(const at::Tensor& tensor);

// Whether an operator with several views returned this view; autograd forbids writes to it.
bool is_one_of_several(const at::Tensor& tensor);

// Whether the tensor is a view, made in no_grad mode, of a tensor which requires gradients.
bool is_unrecorded_view(const at::Tensor& tensor);

// Whether autograd refuses to say what has become of a view, because its memory was written since it was made.
bool is_outdated_view(const at::Tensor& tensor);

// The base, where the tensor is a recorded view of such a view: no gradient reaches the base. Else undefined.
at::Tensor unrecorded_view_behind(const at::Tensor& tensor);

// Whether autograd permits an in-place write to the tensor of a value which requires gradients.
bool may_rebase(const at::Tensor& tensor);

// Raises autograd's error for an in-place write of a value which requires gradients, where autograd forbids the write.
void require_rebase(const at::Tensor& tensor);

// Called after a write: makes the tensor result `input_nr` of the node.
void rebase(const at::Tensor& written, NodePtr node, uint32_t input_nr);

// Replaces a leaf of the autograd graph: gradients which arrive at `other` are `leaf`'s gradients from now on.
void take_place_of(const at::Tensor& other, const at::Tensor& leaf);

// Whether autograd is at work on the history of this view: it regenerates the view from the base's present state. The
// operators which it calls must neither end a capture nor ask for this history.
bool is_asked_for_history(const at::Tensor& tensor);

// Updates the history of a view whose base was written. Normally the view updates when asked, but this happens now,
// while no tensor of a capture has symbolic sizes. No-op while autograd is at work on this history.
void refresh_history(const at::Tensor& view);

// Drops the history of a view; autograd derives it from the base at the next request.
void forget_history(const at::Tensor& view);

// RAII: enables autograd's dispatch keys again. A graph segment may end inside of an operator (.item()), below
// autograd, which must record nevertheless.
class AboveAutograd {
 public:
  AboveAutograd() : guard_(with_autograd()) {}

 private:
  static c10::impl::LocalDispatchKeySet with_autograd() {
    c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
    keys.excluded_ = keys.excluded_ - c10::autograd_dispatch_keyset_with_ADInplaceOrView;
    return keys;
  }
  c10::impl::ForceDispatchKeyGuard guard_;
};

}  // namespace cresset::bridge
