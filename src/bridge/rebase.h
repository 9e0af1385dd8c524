// Histories of tensors that the caller has, and that a call writes in place.
//
// While a call is captured, autograd notes such writes for real, in the history of the caller's own tensor. When the
// piece ends, the tensor gets back the history that it had; each call of the compiled piece then does what autograd
// does after a write: the tensor, and what it is a view of, become results of the call's node.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "bridge/node_ptr.h"

namespace cresset::bridge {

// What autograd knows of a tensor before a call.
class History {
 public:
  // nullptr: of a leaf that is no view, there is nothing to be known.
  static std::shared_ptr<const History> of(const at::Tensor& tensor);

  // Where gradients of what the tensor was then arrive; nowhere, of a leaf.
  const torch::autograd::Edge& edge() const { return edge_; }
  // Whether its gradient is kept (t.retain_grad()).
  bool is_retained() const { return is_retained_; }
  // The tensor has this history again. nullptr: that of a leaf.
  static void restore(const std::shared_ptr<const History>& history, const at::Tensor& tensor);

 private:
  torch::autograd::Edge edge_;
  torch::autograd::Edge of_base_;  // of a view
  bool is_retained_ = false;
};

// A view, of which autograd tells its base.
bool is_recorded_view(const at::Tensor& tensor);

// A view of an operator that gives several, which autograd does not let be written.
bool is_one_of_several(const at::Tensor& tensor);

// A view of what wants gradients, made where nothing was recorded.
bool is_unrecorded_view(const at::Tensor& tensor);

// Whether autograd lets a tensor be written in place, when gradients of what is written are wanted.
bool may_rebase(const at::Tensor& tensor);

// After a write: the tensor is what the node computed, its result `input_nr`.
void rebase(const at::Tensor& written, NodePtr node, uint32_t input_nr);

// A leaf of autograd's record: what arrives at `other` is the gradient of `leaf` from now on.
void take_place_of(const at::Tensor& other, const at::Tensor& leaf);

// Whether autograd is about to say what has become of a view: it makes the view anew, of its base as that is now. What
// it calls for that must neither end a capture nor ask for this history.
bool is_asked_for_history(const at::Tensor& tensor);

// A view whose base was written learns its history when it is asked: now, while nobody in a capture has sizes that are
// symbols. Not where that is being asked at this moment.
void refresh_history(const at::Tensor& view);

// A view has no history of its own until it is asked for: it follows from that of its base.
void forget_history(const at::Tensor& view);

// A piece may end inside of an operator (.item()), below autograd, which is to record all the same.
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
