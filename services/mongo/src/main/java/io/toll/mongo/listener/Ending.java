package io.toll.mongo.listener;

import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.handler.ssl.SslCloseCompletionEvent;

/** Ends a connection that cannot go on, and says why in one line: an outsider's handshake is nothing to trace. */
final class Ending extends ChannelInboundHandlerAdapter {
    /** A JDK's engine leaves its own half of a TLS 1.3 session open when the client says farewell; OpenSSL does not. */
    @Override
    public void userEventTriggered(ChannelHandlerContext context, Object event) {
        if (event instanceof SslCloseCompletionEvent) {
            context.close();
        }
        context.fireUserEventTriggered(event);
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable why) {
        System.err.println("closing " + context.channel().remoteAddress() + ": " + why);
        context.close();
    }
}
