// The elements of a pooling window, for rules that read them one by one.
#pragma once

#include <vector>

#include "ops/rule_helpers.h"

namespace cresset::ops {

// What reads more elements than this for one is left to ATen.
inline constexpr int64_t kMostUnrolled = 32;

// The window of an element over the last dimensions of an image.
struct WindowOf {
  std::vector<int64_t> kernel, stride, padding, dilation;  // one a dimension

  int64_t elements() const;
};

// Of (self, kernel_size, stride, padding, [dilation]).
WindowOf window_of(const OpArgs& args, size_t spatial, bool dilated);

// Where the window of the result's element `index` begins along dimension `i` of the last ones: in the padding, maybe.
sym::ExprId start_of(ElementContext& context, const WindowOf& window, const Index& index, size_t i);

// One element of a window: its index, and where it lies in the image (invalid: always).
struct WindowPlace {
  Index index;
  loop::ScalarId inside;
};

// The element that is number `at` of the window, row-major, of the result's element `index`.
WindowPlace place_in_window(ElementContext& context, const Sizes& image, const WindowOf& window, const Index& index,
                            int64_t at);

// Its value, meaningful where it is inside.
loop::ScalarId element_at(ElementContext& context, graph::ValueId image, const WindowPlace& place);

// aten::avg_pool2d and 3d, of floats and small windows.
Result<std::vector<graph::ValueId>> decompose_average(graph::Graph& graph, const OpArgs& args, size_t spatial);

// aten::max_pool2d_with_indices, likewise.
Result<std::vector<graph::ValueId>> decompose_greatest(graph::Graph& graph, const OpArgs& args);

}  // namespace cresset::ops
