// The elements of a pooling window, for rules which read them one by one.
#pragma once

#include <vector>

#include "ops/rule_helpers.h"

namespace cresset::ops {

// ATen computes windows with more elements.
inline constexpr int64_t kMostUnrolled = 32;

// The window of an element over the last dimensions of an image.
struct WindowOf {
  std::vector<int64_t> kernel, stride, padding, dilation;  // a number for each dimension

  int64_t elements() const;
};

// Reads the arguments (self, kernel_size, stride, padding, [dilation]).
WindowOf window_of(const OpArgs& args, size_t spatial, bool dilated);

// The start of the window of the result's element `index` along dimension `i` of the spatial dimensions. The start may
// lie in the padding.
sym::ExprId start_of(ElementContext& context, const WindowOf& window, const Index& index, size_t i);

// An element of a window: its index, and the condition that it lies in the image (invalid: always).
struct WindowPlace {
  Index index;
  loop::ScalarId inside;
};

// Element number `at`, row-major, of the window of the result's element `index`.
WindowPlace place_in_window(ElementContext& context, const Sizes& image, const WindowOf& window, const Index& index,
                            int64_t at);

// Returns its value, which is meaningful only inside the image.
loop::ScalarId element_at(ElementContext& context, graph::ValueId image, const WindowPlace& place);

// Decomposes aten::avg_pool2d and 3d for floats and small windows.
Result<std::vector<graph::ValueId>> decompose_average(graph::Graph& graph, const OpArgs& args, size_t spatial);

// The same for aten::max_pool2d_with_indices.
Result<std::vector<graph::ValueId>> decompose_greatest(graph::Graph& graph, const OpArgs& args);

}  // namespace cresset::ops
