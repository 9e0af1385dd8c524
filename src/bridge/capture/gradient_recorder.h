// The gradients of a capture's results (autograd/gradients.h): the backward subgraph, and autograd's history of the
// results and of the caller's written tensors. The functions are in bridge/autograd.
//
// Invariant: a failure leaves the graph and the histories as they were.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "bridge/capture/captured.h"
#include "bridge/capture/storage_id.h"

namespace torch::autograd {
struct Node;
}

namespace cresset::bridge {

class Capture;

class GradientRecorder {
 public:
  explicit GradientRecorder(Capture& capture);

  // Appends the gradients of the results with respect to the caller's tensors, separately from the program. The results
  // then have no autograd history: compiled code attaches it. Must not hold the GIL. Returns a reason on failure; then
  // nothing has changed.
  BreakReason record_gradients(const std::vector<at::Tensor>& results);
  // Reasons of a failure: t.retain_grad(); an earlier torch.autograd.grad() which freed a part of the autograd graph.
  bool retained_gradients() const { return retained_gradients_; }
  bool freed_graph() const { return freed_graph_; }
  const std::shared_ptr<Backward>& backward() const { return backward_; }
  std::shared_ptr<const Backward> finished_backward(const std::vector<at::Tensor>& outputs);
  // Results which require gradients and are leaves.
  const std::vector<at::Tensor>& own_leaves() const { return own_leaves_; }
  // Sets the fields of a result's specification which say what autograd knows of it.
  void describe(OutputSpec& spec, const at::Tensor& output) const;
  // Sets OutputSpec::viewed.
  void link_views(std::vector<OutputSpec>& specs, const std::vector<at::Tensor>& outputs) const;
  // The autograd graph of this run stays in the histories of the caller's written tensors.
  void settle_written() const;
  // Settles the results of the operator which ended the capture and ran eagerly. Autograd saw it with symbolic sizes.
  void settle_native_results(const std::vector<at::Tensor>& results) const;

 private:
  struct Leaves;            // of the autograd graph
  struct BackwardSubgraph;  // under construction
  std::string obstacle_to_gradients(const std::vector<at::Tensor>& roots, Leaves& leaves,
                                    std::vector<torch::autograd::Node*>& python);
  std::vector<at::Tensor> differentiable(const std::vector<at::Tensor>& results, std::string& why);
  bool owns_memory(const at::Tensor& base);
  void add_gradients(const std::vector<at::Tensor>& roots, Leaves& leaves,
                     const std::vector<torch::autograd::Node*>& python, BackwardSubgraph& part);
  void defer_to_autograd(const std::vector<torch::autograd::Node*>& python);
  bool find_written(std::vector<at::Tensor>& written);
  std::string obstacle_to_histories(const std::vector<at::Tensor>& results) const;
  void settle_histories(const std::vector<at::Tensor>& results);
  bool is_view_of_written(const at::Tensor& result) const;
  void note_plain(const std::vector<at::Tensor>& wanted, const std::vector<at::Tensor>& results);
  // Notes what autograd knows of results which are views, before they lose their history.
  void note_views(const std::vector<at::Tensor>& results);

  struct Viewed {
    const c10::TensorImpl* of = nullptr;  // another result
    bool is_of_base = false;              // made anew from the base after a write
    std::string node;                     // of several views
    uint32_t number = 0;
  };
  struct OfWritten {
    bool detached, unrecorded;
  };
  Capture& capture_;
  std::shared_ptr<Backward> backward_;
  std::vector<StorageId> roots_;  // ids, not tensors: the roots must not keep bases alive
  std::unordered_map<const c10::TensorImpl*, OfWritten> of_written_;  // results which are views of written storages
  std::vector<at::Tensor> own_leaves_;
  std::unordered_map<const c10::TensorImpl*, Viewed> viewed_;
  std::unordered_set<const c10::TensorImpl*> plain_;  // results in a root's memory which require no gradients
  uint64_t first_node_;                               // the first autograd node made during this capture
  bool retained_gradients_ = false, freed_graph_ = false;
};

}  // namespace cresset::bridge
