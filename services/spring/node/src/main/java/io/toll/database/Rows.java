package io.toll.database;

import io.r2dbc.spi.ColumnMetadata;
import io.r2dbc.spi.Row;
import io.r2dbc.spi.RowMetadata;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Turns a row into what JSON can say: its values by column name, in the columns' order. */
final class Rows {
    private static final List<String> TYPES =
            List.of("bool", "int2", "int4", "int8", "float4", "float8", "text", "varchar", "name");

    private Rows() {}

    static Map<String, @Nullable Object> byName(Row row, RowMetadata metadata) {
        List<? extends ColumnMetadata> columns = metadata.getColumnMetadatas();
        Map<String, @Nullable Object> values = new LinkedHashMap<>();
        for (int at = 0; at < columns.size(); at++) {
            ColumnMetadata column = columns.get(at);
            demandKnownType(column);
            values.put(column.getName(), inJson(row.get(at)));
        }
        return values;
    }

    /** A number that JSON has not (NaN, infinity) is null. */
    private static @Nullable Object inJson(@Nullable Object value) {
        boolean unsayable = value instanceof Double number && !Double.isFinite(number)
                || value instanceof Float single && !Float.isFinite(single);
        return unsayable ? null : value;
    }

    private static void demandKnownType(ColumnMetadata column) {
        String type = column.getType().getName().toLowerCase(Locale.ROOT);
        if (!TYPES.contains(type)) {
            throw new IllegalArgumentException(
                    "column `" + column.getName() + "` has the type " + type + ", not one of " + TYPES);
        }
    }
}
