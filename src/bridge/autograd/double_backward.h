// Backward passes whose results require gradients themselves (create_graph=True).
//
// Compiled code has no derivative. A pass of this kind therefore runs the forward part of the joint graph operator by
// operator, through autograd (recorded_forward.h). It starts from the call's tensors with their history at the call.
// Autograd then computes the gradients and records the same graph as in eager mode. Values independent of the
// differentiated tensors (a dropout's mask) are taken from the call's saved values.
//
// Where autograd lacks a derivative of a cresset operator, the backward subgraph runs in the same way. The backward
// subgraph knows neither Python functions in the autograd graph nor the forward values behind a checkpoint's recomputed
// values; an error reports these cases.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "bridge/aten/node_ptr.h"
#include "bridge/autograd/gradients.h"
#include "bridge/capture/captured.h"

namespace cresset::bridge {

class RecordedForward;

// Belongs to a cache entry.
class DoubleBackward {
 public:
  // The data which a single call leaves behind.
  struct Call {
    SavedTensors inputs;
    std::vector<torch::autograd::Edge> edges;  // targets of the inputs' gradients; invalid: no gradient is wanted
    std::vector<uint32_t> constants;           // their versions
    std::vector<int64_t> symbols;
    // By position among the graph's mutations: whether the pass has a copy of what was overwritten.
    std::vector<bool> has_copies;
    std::unordered_map<uint32_t, at::Tensor> overwritten_constants;  // those copies, with their history
  };

  // graph: the joint graph as captured.
  DoubleBackward(const graph::Graph& graph, std::shared_ptr<const Backward> backward,
                 const std::vector<at::Tensor>& constants, const std::unordered_map<sym::VarId, uint32_t>& slots);

  // Whether autocast, in this thread's state, casts for an operator of the backward subgraph.
  bool casts_apart() const;

  // saved: graph values which the call keeps for its backward passes.
  void set_saved(std::vector<graph::ValueId> saved) { saved_ = std::move(saved); }

  // Copies of what the call is about to overwrite and a pass needs, by position among the graph's mutations; undefined:
  // no pass needs it.
  std::vector<at::Tensor> before_writes(c10::ArrayRef<at::Tensor> inputs) const;

  Call note(c10::ArrayRef<at::Tensor> inputs, const std::vector<at::Tensor>& before, const int64_t* symbols,
            size_t count) const;

  // The gradients of the leaves. layouts: of the tangents, which may be undefined.
  std::vector<at::Tensor> run(const Call& call, std::vector<at::Tensor> tangents,
                              const std::vector<TangentLayout>& layouts, const std::vector<at::Tensor>& saved) const;

  // The gradients which arrive at the intermediate outputs for these tangents.
  std::vector<at::Tensor> arriving(const Call& call, std::vector<at::Tensor> tangents,
                                   const std::vector<TangentLayout>& layouts,
                                   const std::vector<at::Tensor>& saved) const;

 private:
  std::vector<graph::ValueId> needed() const;
  template <class Give>
  std::vector<at::Tensor> interpreted(const Call& call, const std::vector<at::Tensor>& saved,
                                      const std::vector<graph::ValueId>& wanted, Give&& give) const;
  std::vector<bool> free_to_change(const Call& call) const;
  void keep_contents(RecordedForward& forward, const Call& call, const std::vector<at::Tensor>& saved,
                     const std::vector<bool>& changed) const;
  struct Rewritten {
    graph::ValueId saved, contents;
  };
  std::vector<Rewritten> rewritten() const;
  std::vector<bool> depends_on_leaves(const Call& call) const;
  void check(const Call& call, const std::vector<bool>& read) const;
  std::vector<at::Tensor> constants_of(const Call& call) const;

  bool is_plain(const std::vector<bool>& depends) const;
  std::optional<std::vector<at::Tensor>> through_autograd(const Call& call, const std::vector<at::Tensor>& tangents,
                                                          const std::vector<at::Tensor>& saved) const;

  const std::shared_ptr<const graph::Graph> whole_;
  const graph::Graph& graph_;
  const std::shared_ptr<const Backward> backward_;
  const std::vector<at::Tensor> constants_;
  const std::unordered_map<sym::VarId, uint32_t> slots_;
  std::vector<graph::ValueId> saved_;
  std::vector<bool> needs_copies_;         // by position among the graph's mutations
  struct Castable {                        // argument dtypes of autocast-aware operators in the backward subgraph
    std::vector<c10::ScalarType> lowered;  // of operators which autocast casts to its own dtype
    bool others = false;
  };
  void note_castable(graph::NodeId id);
  Castable on_cpu_, on_cuda_;
};

}  // namespace cresset::bridge
