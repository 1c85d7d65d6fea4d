module @jit_descend attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x2xf32> {tf.aliasing_output = 0 : i32}, %arg1: tensor<3x2xf32>) -> (tensor<3x2xf32> {jax.result_info = "result['w']"}) {
    %0 = stablehlo.constant dense<0.10000000149011612> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<3x2xf32>
    %2 = stablehlo.multiply %1, %arg1 : tensor<3x2xf32>
    %3 = stablehlo.subtract %arg0, %2 : tensor<3x2xf32>
    return %3 : tensor<3x2xf32>
  }
}
