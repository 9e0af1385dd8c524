// The elementwise step of a recurrent layer's state, and its derivative, for f32: a single loop over all gates
// (recurrent_steps.h defines them). Rows are the batch.
#pragma once

#include <cstdint>

namespace cresset::bridge {

// A matrix of rows whose elements are contiguous.
template <class T>
struct Rows {
  T* data = nullptr;  // null: absent
  int64_t stride = 0;
  T* operator[](int64_t row) const { return data == nullptr ? nullptr : data + row * stride; }
};

struct CellForward {
  int64_t rows = 0, features = 0;
  Rows<const float> given, from_state, before, cell_before;
  const float* bias = nullptr;
  Rows<float> kept, out;
};
void lstm_cells(const CellForward& step);
void gru_cells(const CellForward& step);
void tanh_cells(const CellForward& step);
void relu_cells(const CellForward& step);

struct CellBackward {
  int64_t rows = 0, features = 0;
  Rows<const float> gradient, later, kept, out, before, cell_before;  // later: gradient from the later steps
  Rows<float> cell;  // gradient of the cell: first after the step, then before it
  Rows<float> gates;
  // gru only. hidden: gradients of the state's part in the gates. otherwise: gradients of the state past the gates,
  // first after the step, then before it.
  Rows<float> hidden, otherwise;
};
void lstm_cells_backward(const CellBackward& step);
void gru_cells_backward(const CellBackward& step);
void tanh_cells_backward(const CellBackward& step);
void relu_cells_backward(const CellBackward& step);

}  // namespace cresset::bridge
