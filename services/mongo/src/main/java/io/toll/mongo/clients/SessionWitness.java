package io.toll.mongo.clients;

import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.handler.ssl.SslHandler;
import io.netty.handler.ssl.SslHandshakeCompletionEvent;
import javax.net.ssl.SSLPeerUnverifiedException;
import javax.net.ssl.SSLSession;

/** Sees a connection's TLS session once both sides have shown who they are, and hands the client's certificate on. */
final class SessionWitness extends ChannelInboundHandlerAdapter {
    private final Clients clients;

    SessionWitness(Clients clients) {
        this.clients = clients;
    }

    @Override
    public void userEventTriggered(ChannelHandlerContext context, Object event) throws SSLPeerUnverifiedException {
        if (event instanceof SslHandshakeCompletionEvent handshake && handshake.isSuccess()) {
            SSLSession session = context.pipeline().get(SslHandler.class).engine().getSession();
            clients.count(session.getPeerCertificates()[0]);
        }
        context.fireUserEventTriggered(event);
    }
}
