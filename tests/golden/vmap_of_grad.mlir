module @jit_gradient_of_each attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x2xf32>, %arg1: tensor<4x3xf32>, %arg2: tensor<4x2xf32>) -> (tensor<4x3x2xf32> {jax.result_info = "result"}) {
    %0:2 = call @layer(%arg0, %arg1) : (tensor<3x2xf32>, tensor<4x3xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>)
    %1 = stablehlo.subtract %0#0, %arg2 : tensor<4x2xf32>
    %2 = stablehlo.constant dense<2.0> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<f32>) -> tensor<4x2xf32>
    %4 = stablehlo.multiply %3, %1 : tensor<4x2xf32>
    %5 = stablehlo.constant dense<1.0> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %7 = stablehlo.broadcast_in_dim %6, dims = [1] : (tensor<2xf32>) -> tensor<4x2xf32>
    %8 = stablehlo.multiply %7, %4 : tensor<4x2xf32>
    %9 = call @layer_0(%arg1, %0#1, %8) : (tensor<4x3xf32>, tensor<4x2xf32>, tensor<4x2xf32>) -> (tensor<4x3x2xf32>)
    return %9 : tensor<4x3x2xf32>
  }
  func.func private @layer(%arg0: tensor<3x2xf32>, %arg1: tensor<4x3xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>) {
    %0 = stablehlo.dot_general %arg1, %arg0, contracting_dims = [1] x [0] : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
    %1 = stablehlo.tanh %0 : tensor<4x2xf32>
    %2 = stablehlo.multiply %1, %1 : tensor<4x2xf32>
    %3 = stablehlo.constant dense<1.0> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<4x2xf32>
    %5 = stablehlo.subtract %4, %2 : tensor<4x2xf32>
    return %1, %5 : tensor<4x2xf32>, tensor<4x2xf32>
  }
  func.func private @layer_0(%arg0: tensor<4x3xf32>, %arg1: tensor<4x2xf32>, %arg2: tensor<4x2xf32>) -> (tensor<4x3x2xf32>) {
    %0 = stablehlo.multiply %arg2, %arg1 : tensor<4x2xf32>
    %1 = stablehlo.dot_general %arg0, %0, batching_dims = [0] x [0], contracting_dims = [] x [] : (tensor<4x3xf32>, tensor<4x2xf32>) -> tensor<4x3x2xf32>
    return %1 : tensor<4x3x2xf32>
  }
}
