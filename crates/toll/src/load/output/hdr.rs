//! HdrHistogram's percentile distribution of the latency, in milliseconds: the text that wrk2 and the C library
//! write and that HdrHistogram plotters read. The counts are those of toll's own histogram, nothing is
//! interpolated. Without any answer the table is empty, where wrk2 writes a row of zero and `-nan`.

use std::fmt::{self, Write as _};

use toll_load::Histogram;

use super::Finished;

/// Rows for each halving of the distance to 100 %, as wrk2 has them.
const TICKS_PER_HALF_DISTANCE: u32 = 5;

pub(super) fn render(load: Finished<'_>) -> String {
    let mut text = String::new();
    write_all(&mut text, &load.measured().latency).expect("a string takes all text");
    text
}

fn write_all(out: &mut String, latency: &Histogram) -> fmt::Result {
    writeln!(out, "       Value   Percentile   TotalCount 1/(1-Percentile)\n")?;
    write_rows(out, latency)?;
    let (mean, deviation) = (latency.mean_us() / 1e3, latency.deviation_us() / 1e3);
    writeln!(out, "#[Mean    = {mean:12.3}, StdDeviation   = {deviation:12.3}]")?;
    let (max, count) = (latency.max_us() / 1e3, latency.count());
    writeln!(out, "#[Max     = {max:12.3}, Total count    = {count:12}]")?;
    let (buckets, sub_buckets) = (latency.0.buckets(), sub_buckets(latency.0.sigfig()));
    writeln!(out, "#[Buckets = {buckets:12}, SubBuckets     = {sub_buckets:12}]")
}

fn write_rows(out: &mut String, latency: &Histogram) -> fmt::Result {
    let mut total = 0;
    for row in latency.0.iter_quantiles(TICKS_PER_HALF_DISTANCE) {
        total += row.count_since_last_iteration();
        let value = row.value_iterated_to() as f64 / 1e6;
        let quantile = row.quantile_iterated_to();
        // Infinite for the last row, which plotters leave out.
        let inverse = 1.0 / (1.0 - quantile);
        writeln!(out, "{value:12.3} {quantile:12.6} {total:12} {inverse:12.2}")?;
    }
    Ok(())
}

/// Linear steps of each bucket, as the format computes them: the power of two that tells `digits` digits apart.
fn sub_buckets(digits: u8) -> u64 {
    (2 * 10_u64.pow(digits.into())).next_power_of_two()
}
